// Small models made on the spot: from given values, or random in every storage type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/dtype.h"
#include "kvlens/kv_cache.h"
#include "kvlens/model.h"
#include "kvlens/random.h"
#include "kvlens/session.h"
#include "support/expect.h"

namespace kvlens::testing {

struct NamedValues {
  std::string name;
  std::vector<double> values;  // row-major, one row an output
};

// `values` in a plain float type. f16 is not offered: nothing here needs a rounding to it.
std::vector<std::byte> encode(std::span<const double> values, DType dtype);

// Bytes of `rows` x `cols` random finite values in any storage type; blocks have small random
// scales.
std::vector<std::byte> random_matrix(std::size_t rows, std::size_t cols, DType dtype,
                                     SplitMix64& rng);

std::shared_ptr<Model> model_of(const Config& config, std::span<const NamedValues> parameters,
                                DType dtype);

// Every parameter random: gains and biases too, which a freshly initialised model has at 1 and 0.
std::shared_ptr<Model> random_model(const Config& config, SplitMix64& rng,
                                    DType matrices = DType::f64);

struct NamedConfig {
  std::string name;
  Config config;
};

// 2 layers, 2 heads of 4, width 6, vocabulary 7, 12 positions: MHA, interleaved, tied.
Config tiny_config();
// The tiny decoder with each feature by itself, and with all of them at once.
std::vector<NamedConfig> config_variants();

// Any small decoder that is valid; input widths are multiples of `block_values`.
Config random_config(SplitMix64& rng, std::size_t block_values = 1);
std::string describe(const Config& config);

// Uniform in [low, high].
std::size_t random_size(SplitMix64& rng, std::size_t low, std::size_t high);
std::vector<std::uint32_t> random_tokens(SplitMix64& rng, std::size_t count,
                                         std::size_t vocab_size);

template <class T>
std::unique_ptr<Session<T>> make_session(const std::shared_ptr<Model>& model, std::size_t capacity,
                                         const SessionOptions& options = {},
                                         DType kv_dtype = dtype_of<T>) {
  return must(
      Session<T>::bind(model, must(KvCache<T>::create(*model, capacity, kv_dtype)), options));
}

template <class T>
std::unique_ptr<Session<T>> make_session(const std::shared_ptr<Model>& model) {
  return make_session<T>(model, model->config().max_seq_len);
}

}  // namespace kvlens::testing
