// Hugging Face checkpoints with the figures of a float64 forward pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kvlens/config.h"
#include "support/safetensors.h"

namespace kvlens::testing {

struct HfCase {
  std::filesystem::path path;
  std::string name;
  Config config;
  std::vector<StoredTensor> tensors;  // kvlens names
  std::vector<std::uint32_t> tokens;
  std::vector<std::vector<double>> logits;  // [token][vocab]
  std::vector<std::vector<std::vector<std::vector<double>>>>
      attentions;  // [layer][head][row][0..row]
  std::vector<std::uint32_t> greedy_prompt;
  std::vector<std::uint32_t> greedy_output;
  double smallest_greedy_gap = 0;  // between the two largest logits, over the greedy run
};

HfCase read_hf_case(const std::filesystem::path& folder);
std::vector<HfCase> read_hf_cases(const std::vector<std::filesystem::path>& folders);

// Divisors of the RoPE frequencies as llama3 scaling defines them, [head_dim / 2]:
// wavelengths above original / low_freq_factor are slowed by `factor`, those below
// original / high_freq_factor are kept, and between the two the frequencies are blended.
struct Llama3Scaling {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  double original_max_position_embeddings;
};
std::vector<double> llama3_freq_factors(const Llama3Scaling& scaling, double theta,
                                        std::size_t head_dim);

}  // namespace kvlens::testing
