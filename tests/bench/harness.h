// One source for two kinds of benchmark: Google Benchmark where it is installed, else (WebAssembly)
// a small loop of our own that prints the best time of each case.
#pragma once

#include <functional>
#include <string>

namespace kvlens::bench {

struct Amount {
  double operations;  // floating-point or integer, two a multiply-add
  double bytes;       // read from memory that a run goes over
};

// `make` builds the data and gives the function to time; it runs only if the case does.
void add(std::string name, Amount amount, std::function<std::function<void()>()> make);

// Every registration of a file, run before main.
struct Registration {
  explicit Registration(void (*cases)()) { cases(); }
};

// Keeps a result alive.
void use(float value);

}  // namespace kvlens::bench
