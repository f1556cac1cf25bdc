// One number for the bits of every storage type in float: natively and as WebAssembly, in chunks of
// any size, on any number of threads. The numbers are kvlens's own: a change of numerics has to
// change them here, where it is seen. What they are worth, golden figures say elsewhere.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>

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
  DType kv_dtype = DType::f32;
};

constexpr std::array stored_bits = {
    StoredBits{DType::f64, 0xaeacbb8d453aa099},
    StoredBits{DType::f32, 0xaeacbb8d453aa099},
    StoredBits{DType::f16, 0xce86ff5db9a46064},
    StoredBits{DType::bf16, 0x7e7d2b7ef273dea2},
    StoredBits{DType::q8_0, 0x78a494acabdf94af},
    StoredBits{DType::q4_0, 0x2294777aa3353929},
    StoredBits{DType::q4_1, 0xa93540983940f506},
    StoredBits{DType::q5_0, 0xab5af27b57f4793c},
    StoredBits{DType::q5_1, 0x9de42e9cb588942c},
    StoredBits{DType::q2_k, 0x0695d7305c61bbb3},
    StoredBits{DType::q3_k, 0x8d56e9688d77eda1},
    StoredBits{DType::q4_k, 0x08d6c24e4a78582b},
    StoredBits{DType::q5_k, 0xdcb3e6f3df3d79b7},
    StoredBits{DType::q6_k, 0x5456748558a8b9ca},
    StoredBits{DType::q8_0, 0x2f2536ba631b180b, DType::bf16},
    StoredBits{DType::q8_0, 0xcf4b6bbf8b53726f, DType::q8_0},
};

Config config() {
  Config config = testing::tiny_config();
  config.n_layers = 1;
  config.n_heads = 8;
  config.n_kv_heads = 4;
  config.head_dim = 32;
  config.d_model = 256;
  config.d_ff = 256;
  config.vocab_size = 40;
  config.max_seq_len = 48;
  return config;
}

// 64-bit FNV-1a over the logits of a prefill of 40 tokens and of four decodes.
std::uint64_t bits_of(const std::shared_ptr<Model>& model, const SessionOptions& options,
                      DType kv_dtype) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](std::span<const float> logits) {
    for (const std::byte byte : std::as_bytes(logits)) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  };
  const auto session =
      testing::make_session<float>(model, model->config().max_seq_len, options, kv_dtype);
  std::vector<std::uint32_t> prompt;
  for (std::uint32_t i = 0; i < 40; ++i) prompt.push_back((i * i + 3 * i + 5) % 40);
  mix(must(session->prefill(prompt)).logits);
  for (const std::uint32_t token : {7U, 11U, 13U, 17U}) mix(must(session->decode(token)).logits);
  return hash;
}

TEST(StoredBitsTest, EveryStorageTypeHasTheStoredBitsInAnyChunksOnAnyThreads) {
  for (const auto& [dtype, expected, kv_dtype] : stored_bits) {
    SCOPED_TRACE(std::string(dtype_info(dtype).name) + ", rows in " +
                 std::string(dtype_info(kv_dtype).name));
    SplitMix64 rng(2026);
    const auto model = testing::random_model(config(), rng, dtype);
    for (const auto& [chunk_rows, n_threads] :
         {std::pair{1U, 1U}, std::pair{7U, 2U}, std::pair{32U, 3U}, std::pair{128U, 8U}}) {
      const std::uint64_t hash = bits_of(
          model, {.chunk_rows = chunk_rows, .pool = testing::make_pool(n_threads)}, kv_dtype);
      EXPECT_EQ(hash, expected) << "chunk_rows " << chunk_rows << ", threads " << n_threads;
    }
  }
}

}  // namespace
}  // namespace kvlens
