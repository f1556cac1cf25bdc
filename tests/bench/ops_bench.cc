// Kernels on the shapes of SmolLM2-135M: d_model 576, d_ff 1536, 192 key/value columns, 49152
// tokens.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "kvlens/random.h"
#include "ops/attend.h"
#include "ops/attend_q8_0.h"
#include "ops/half.h"
#include "ops/linear.h"
#include "ops/packing.h"
#include "ops/row_ops.h"
#include "ops/vector.h"

namespace kvlens::bench {
namespace {

std::vector<float> random_values(std::size_t size) {
  SplitMix64 rng(1);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(2 * rng.unit() - 1);
  return values;
}

struct Product {
  Product(DType dtype, std::size_t n_inputs, std::size_t n_rows, std::size_t n_cols)
      : rows(n_rows), x(random_values(n_inputs * n_cols)), y(n_inputs * n_rows) {
    const std::size_t row_bytes = stored_bytes(dtype, n_cols);
    bytes.resize(rows * row_bytes);
    SplitMix64 rng(2);
    // As 16-bit words these are normal halves, so every scale and float is an ordinary number.
    for (std::size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      const auto word = static_cast<std::uint16_t>((rng.next() & 0x8fffu) | 0x2000u);
      std::memcpy(bytes.data() + i, &word, 2);
    }
    std::vector<std::byte> scratch(4 * row_bytes);
    ops::pack(dtype, rows, n_cols, bytes, scratch);
    matrix = {dtype, ops::can_pack(dtype) ? Layout::packed : Layout::rows, rows, n_cols,
              bytes.data()};
    input = std::move(*ops::LinearInput<float>::create(n_inputs, n_cols));
    input.set(x.data(), n_inputs, n_cols, true);
  }
  void run() {
    ops::linear(matrix, input, 0, rows, y.data());
    use(y[0]);
  }

  std::size_t rows;
  std::vector<float> x;
  std::vector<float> y;
  std::vector<std::byte> bytes;
  ops::MatrixView matrix{};
  ops::LinearInput<float> input;
};

void add_linear(DType dtype, std::size_t n_inputs, std::size_t rows, std::size_t cols) {
  const DTypeInfo info = dtype_info(dtype);
  // K blocks hold 256 values: the next width that is a whole number of them.
  cols = (cols + info.block_values - 1) / info.block_values * info.block_values;
  const auto weights = static_cast<double>(rows * cols);
  add("linear/" + std::string(info.name) + "/" + std::to_string(n_inputs) + "x" +
          std::to_string(rows) + "x" + std::to_string(cols),
      {2 * weights * static_cast<double>(n_inputs),
       weights / static_cast<double>(info.block_values) * static_cast<double>(info.block_bytes)},
      [=]() -> std::function<void()> {
        auto product = std::make_shared<Product>(dtype, n_inputs, rows, cols);
        return [product] { product->run(); };
      });
}

void add_read_probe() {
  constexpr std::size_t bytes = std::size_t{128} << 20;
  add("probe/read", {0, static_cast<double>(bytes)}, []() -> std::function<void()> {
    auto data = std::make_shared<std::vector<std::int32_t>>(bytes / 4, 1);
    return [data] {
      ops::i32x4 total[4] = {};
      for (std::size_t i = 0; i < data->size(); i += 16) {
        for (std::size_t j = 0; j < 4; ++j) {
          total[j] ^= ops::load_as<ops::i32x4>(data->data() + i + 4 * j);
        }
      }
      use(static_cast<float>((total[0] ^ total[1] ^ total[2] ^ total[3])[0]));
    };
  });
}

// Thirty layers of three KV heads, three query heads each: a whole model's, so that a long cache
// comes from memory as far as the machine lets it.
struct Attention {
  static constexpr std::size_t n_groups = 90, group = 3, head_dim = 64;
  Attention(DType stored_as, std::size_t length)
      : dtype(stored_as),
        len(length),
        keys(random_rows(dtype, n_groups * len * head_dim)),
        values(keys),
        q(random_values(group * head_dim)),
        weights(group * len),
        out(group * head_dim) {}
  template <class F>
  void for_groups(F f) {
    for (std::size_t g = 0; g < n_groups; ++g) {
      const std::size_t at = g * bytes_of(dtype, len * head_dim);
      f(ops::KeyValueRows{dtype, keys.data() + at, values.data() + at, head_dim});
    }
  }
  static std::size_t bytes_of(DType dtype, std::size_t size) { return stored_bytes(dtype, size); }
  static std::vector<std::byte> random_rows(DType dtype, std::size_t size) {
    const std::vector<float> floats = random_values(size);
    std::vector<std::byte> rows(bytes_of(dtype, size));
    if (dtype == DType::q8_0) ops::store_q8_0(floats, rows.data());
    for (std::size_t i = 0; i < size; ++i) {
      const ops::BFloat16 rounded = ops::to_bfloat16(floats[i]);
      if (dtype == DType::bf16) std::memcpy(&rows[i * sizeof rounded], &rounded, sizeof rounded);
      if (dtype == DType::f32) std::memcpy(&rows[i * sizeof(float)], &floats[i], sizeof(float));
    }
    return rows;
  }
  DType dtype;
  std::size_t len;
  std::vector<std::byte> keys, values;
  std::vector<float> q, weights, out;
};

void add_attention(DType dtype, std::size_t len) {
  const std::size_t size = Attention::n_groups * len * Attention::head_dim;
  const auto bytes = static_cast<double>(Attention::bytes_of(dtype, size));
  const double operations = static_cast<double>(size) * 2 * Attention::group;
  const std::string name = std::string(dtype_info(dtype).name) + "/" + std::to_string(len);
  add("attention_weights/" + name, {operations, bytes}, [=]() -> std::function<void()> {
    auto a = std::make_shared<Attention>(dtype, len);
    return [a] {
      a->for_groups([&](const auto& rows) {
        ops::attention_weights<float>(rows, {a->q.data(), Attention::head_dim, Attention::group},
                                      {0, a->len}, 0.125f,
                                      {a->weights.data(), a->len, Attention::group});
      });
      use(a->weights[0]);
    };
  });
  add("attention_mix/" + name, {operations, bytes}, [=]() -> std::function<void()> {
    auto a = std::make_shared<Attention>(dtype, len);
    return [a] {
      a->for_groups([&](const auto& rows) {
        ops::attention_mix<float>(rows, {a->weights.data(), a->len, Attention::group}, {0, a->len},
                                  {a->out.data(), Attention::head_dim, Attention::group});
      });
      use(a->out[0]);
    };
  });
}

void add_attend_block(DType dtype, std::size_t end) {
  constexpr std::size_t n_rows = 32;
  double operations = 0;
  for (std::size_t r = 0; r < n_rows; ++r) {
    operations += 4.0 * static_cast<double>((end - r) * Attention::head_dim * Attention::group);
  }
  const std::string name = std::string(dtype_info(dtype).name) + "/" + std::to_string(end);
  add("attend_block/" + name, {operations, 0}, [=]() -> std::function<void()> {
    auto a = std::make_shared<Attention>(dtype, end);
    constexpr std::size_t stride = Attention::group * Attention::head_dim;
    auto q = std::make_shared<std::vector<float>>(random_values(n_rows * stride));
    auto out = std::make_shared<std::vector<float>>(n_rows * stride);
    auto scratch = std::make_shared<std::vector<float>>(
        *ops::attend_scratch<float>(n_rows, Attention::group, end));
    return [=] {
      const ops::KeyValueRows rows{a->dtype, a->keys.data(), a->values.data(), Attention::head_dim};
      const ops::QueryBlock<float> block{.q = q->data(),
                                         .out = out->data(),
                                         .row_stride = stride,
                                         .n_heads = Attention::group,
                                         .first_position = end - n_rows,
                                         .n_rows = n_rows,
                                         .window = 0};
      ops::attend_block<float>(rows, block, 0.125f, *scratch);
      use((*out)[0]);
    };
  });
}

void add_rows() {
  static constexpr std::size_t size = 1536;
  using Row = std::vector<float>;
  const auto with_row = [](auto f) {
    return [f]() -> std::function<void()> {
      auto x = std::make_shared<Row>(random_values(size));
      auto out = std::make_shared<Row>(size);
      return [=] {
        f(*x, *out);
        use((*out)[0]);
      };
    };
  };
  add("softmax/1536", {size, 0}, with_row([](Row& x, Row& out) {
        out = x;
        ops::softmax<float>(out);
      }));
  add("swiglu/1536", {size, 0}, with_row([](Row& x, Row& out) { ops::swiglu<float>(x, x, out); }));
  add("rms_norm/1536", {size, 0},
      with_row([](Row& x, Row& out) { ops::rms_norm<float>(x, x, 1e-5f, out); }));
  add("quantise/1536", {size, 0}, with_row([](Row& x, Row& out) {
        for (std::size_t i = 0; i < size; i += 32) {
          ops::Int8Block block;
          ops::quantise(x.data() + i, block);
          out[i] = block.scale;
        }
      }));
}

const Registration registration([] {
  add_read_probe();
  for (const DType dtype :
       {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q2_k, DType::q3_k,
        DType::q4_k, DType::q5_k, DType::q6_k, DType::f32, DType::f16, DType::bf16}) {
    add_linear(dtype, 1, 49152, 576);
    for (const std::size_t n_inputs : {1u, 128u}) {
      add_linear(dtype, n_inputs, 192, 576);
      add_linear(dtype, n_inputs, 576, 576);
      add_linear(dtype, n_inputs, 1536, 576);
      add_linear(dtype, n_inputs, 576, 1536);
    }
  }
  for (const std::size_t len : {64u, 512u, 2048u}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::q8_0}) {
      add_attention(dtype, len);
      add_attend_block(dtype, len);
    }
  }
  add_rows();
});

}  // namespace
}  // namespace kvlens::bench
