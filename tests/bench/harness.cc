#include "harness.h"

#include <cstdio>
#include <utility>

namespace kvlens::bench {

void use(float value) {
  static float kept;
  *static_cast<volatile float*>(&kept) = value;
}

}  // namespace kvlens::bench

#if __has_include(<benchmark/benchmark.h>) && !defined(__wasm__)
#include <benchmark/benchmark.h>

namespace kvlens::bench {

void add(std::string name, Amount amount, std::function<std::function<void()>()> make) {
  benchmark::RegisterBenchmark(name.c_str(), [amount, make](benchmark::State& state) {
    const auto run = make();
    for ([[maybe_unused]] auto _ : state) run();
    const auto rate = [&](double each) {
      return benchmark::Counter(each, benchmark::Counter::kIsIterationInvariantRate);
    };
    if (amount.operations > 0) state.counters["op/s"] = rate(amount.operations);
    if (amount.bytes > 0) state.counters["B/s"] = rate(amount.bytes);
  });
}

}  // namespace kvlens::bench

#else
#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

namespace kvlens::bench {
namespace {

struct Case {
  std::string name;
  Amount amount;
  std::function<std::function<void()>()> make;
};
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void add(std::string name, Amount amount, std::function<std::function<void()>()> make) {
  cases().push_back({std::move(name), amount, std::move(make)});
}

// Cases whose name contains `filter`.
void run_all(std::string_view filter) {
  for (const Case& each : cases()) {
    if (each.name.find(filter) == std::string::npos) continue;
    const auto run = each.make();
    // Long enough for the optimising compiler to have taken over.
    double best = 1e9;
    for (const double start = seconds(); seconds() - start < 0.5;) {
      const double begin = seconds();
      run();
      best = std::min(best, seconds() - begin);
    }
    std::printf("%-36s %10.1f us %8.1f Gop/s %7.1f GB/s\n", each.name.c_str(), best * 1e6,
                each.amount.operations / best * 1e-9, each.amount.bytes / best * 1e-9);
  }
}

}  // namespace kvlens::bench

int main(int argc, char** argv) { kvlens::bench::run_all(argc > 1 ? argv[1] : ""); }
#endif
