// One number for the bits of every storage type in float: natively and as WebAssembly, in chunks of
// any size, on any number of threads. The numbers are kvlens's own: a change of numerics has to
// change them here, where it is seen. What they are worth, golden figures say elsewhere.

#include <gtest/gtest.h>

#include <array>

#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"

namespace kvlens {
namespace {

using testing::must;

struct StoredBits {
  DType dtype;
  std::uint64_t hash;
};

constexpr std::array stored_bits = {
    StoredBits{DType::f64, 0x3ab20d0563d9984b},  StoredBits{DType::f32, 0x3ab20d0563d9984b},
    StoredBits{DType::f16, 0x0efe6131a9968860},  StoredBits{DType::bf16, 0x8e6f2fcbce507711},
    StoredBits{DType::q8_0, 0x4eba708c6a9ef59d}, StoredBits{DType::q4_0, 0x134673b9a0002533},
    StoredBits{DType::q4_1, 0x723c40fa6b09e2e9}, StoredBits{DType::q5_0, 0xe2c303f457c88596},
    StoredBits{DType::q5_1, 0x6252ee933ec37ddd}, StoredBits{DType::q2_k, 0x2ff6f06bdb9f9768},
    StoredBits{DType::q3_k, 0x690e8d89d087637e}, StoredBits{DType::q4_k, 0xb37a78d5a9356011},
    StoredBits{DType::q5_k, 0x2181944a9e5afb7a}, StoredBits{DType::q6_k, 0x74643b737bcbe74e},
};

Config config() {
  Config config = testing::tiny_config();
  config.n_heads = 8;
  config.n_kv_heads = 4;
  config.head_dim = 32;
  config.d_model = 256;
  config.d_ff = 256;
  config.vocab_size = 40;
  config.max_seq_len = 160;
  return config;
}

// 64-bit FNV-1a over the logits of a prefill of 140 tokens and of four decodes.
std::uint64_t bits_of(const std::shared_ptr<Model>& model, const SessionOptions& options) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](std::span<const float> logits) {
    for (const std::byte byte : std::as_bytes(logits)) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  };
  const auto session = testing::make_session<float>(model, model->config().max_seq_len, options);
  std::vector<std::uint32_t> prompt;
  for (std::uint32_t i = 0; i < 140; ++i) prompt.push_back((i * i + 3 * i + 5) % 40);
  mix(must(session->prefill(prompt)).logits);
  for (const std::uint32_t token : {7U, 11U, 13U, 17U}) mix(must(session->decode(token)).logits);
  return hash;
}

TEST(StoredBitsTest, EveryStorageTypeHasTheStoredBitsInAnyChunksOnAnyThreads) {
  for (const auto& [dtype, expected] : stored_bits) {
    SCOPED_TRACE(dtype_info(dtype).name);
    SplitMix64 rng(2026);
    const auto model = testing::random_model(config(), rng, dtype);
    for (const std::size_t chunk_rows : {1U, 7U, 32U, 128U}) {
      for (const std::size_t n_threads : {1U, 2U, 3U}) {
        const std::uint64_t hash =
            bits_of(model, {.chunk_rows = chunk_rows, .pool = testing::make_pool(n_threads)});
        EXPECT_EQ(hash, expected) << "chunk_rows " << chunk_rows << ", threads " << n_threads;
      }
    }
  }
}

}  // namespace
}  // namespace kvlens
