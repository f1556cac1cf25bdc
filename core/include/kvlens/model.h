// A model: a configuration and its named parameters, each with an identity and a revision.
//
// Parameters, in the order of `parameter_specs` (bracketed ones only where the configuration has
// them):
//   token_embedding                       [vocab_size, d_model]
//   layers.N.attention_norm               [d_model]
//   layers.N.q_proj  [layers.N.q_bias]    [n_heads * head_dim, d_model]     [n_heads * head_dim]
//   layers.N.k_proj  [layers.N.k_bias]    [n_kv_heads * head_dim, d_model]  [n_kv_heads * head_dim]
//   layers.N.v_proj  [layers.N.v_bias]    the same as k
//   [layers.N.q_norm  layers.N.k_norm]    [head_dim]
//   layers.N.o_proj                       [d_model, n_heads * head_dim]
//   layers.N.ffn_norm                     [d_model]
//   layers.N.gate_proj  layers.N.up_proj  [d_ff, d_model]
//   layers.N.down_proj                    [d_model, d_ff]
//   final_norm                            [d_model]
//   [lm_head]                             [vocab_size, d_model]
// Matrices are row-major with one row an output; vectors are stored as plain floats.
//
// Ownership: a Model lives behind a shared_ptr. While a Session holds it, no parameter can change.
// Threading: a Model is read by any number of sessions; building and updating are single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvlens/config.h"
#include "kvlens/dtype.h"
#include "kvlens/error.h"
#include "kvlens/layout.h"
#include "kvlens/memory.h"
#include "kvlens/random.h"

namespace kvlens {

struct ParameterSpec {
  std::string name;
  std::size_t rows;  // 1 for a vector
  std::size_t cols;
  bool is_vector;
};

// Every parameter that `config` calls for, in order. `config` must be valid.
[[nodiscard]] std::vector<ParameterSpec> parameter_specs(const Config& config);

struct Parameter {
  ParameterSpec spec;
  DType dtype;
  Layout layout;
  Buffer<std::byte> bytes;
  std::uint64_t identity;  // unique in the process
  std::uint64_t revision;  // 0 when made, +1 at each update
};

class Model {
 public:
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Random decoder for tests and the toy model: Xavier-uniform matrices (Glorot and Bengio 2010),
  // gains 1, biases 0, drawn in the order of `parameter_specs`; projections are drawn input by
  // input
  // ([cols, rows]), token_embedding and lm_head row by row. `rng` is left after the last draw.
  // Errors: invalid_config, unsupported_dtype (f64 and f32 only), out_of_memory; `rng` is then as
  // it was.
  [[nodiscard]] static Result<std::shared_ptr<Model>> random(const Config& config, SplitMix64& rng,
                                                             DType dtype);

  [[nodiscard]] const Config& config() const noexcept { return config_; }
  [[nodiscard]] std::span<const Parameter> parameters() const noexcept { return parameters_; }
  // Null when there is none of that name.
  [[nodiscard]] const Parameter* find(std::string_view name) const noexcept;
  [[nodiscard]] std::uint64_t live_sessions() const noexcept { return borrows_; }
  [[nodiscard]] std::uint64_t parameter_bytes() const noexcept;

  // The values of rows [row_begin, row_begin + n) of a parameter as doubles, [n, cols].
  // Errors: unknown_parameter, invalid_argument, shape_mismatch (size of `out`).
  [[nodiscard]] Result<void> read_rows(std::string_view name, std::size_t row_begin,
                                       std::span<double> out) const;

  // Replaces a parameter's storage with `bytes` (row-major, `dtype`) and bumps its revision.
  // Errors: parameter_borrowed (a session is alive), unknown_parameter, parameter_size_mismatch,
  // unsupported_dtype, non_finite_parameter, out_of_memory; the model is unchanged after each.
  [[nodiscard]] Result<void> update_parameter(std::string_view name, DType dtype,
                                              std::span<const std::byte> bytes);

  // A session's hold on the model; no update succeeds while one is alive.
  class Borrow {
   public:
    explicit Borrow(std::shared_ptr<Model> model) noexcept : model_(std::move(model)) {
      ++model_->borrows_;
    }
    Borrow(const Borrow&) = delete;
    Borrow& operator=(const Borrow&) = delete;
    ~Borrow() { --model_->borrows_; }
    [[nodiscard]] const Model& operator*() const noexcept { return *model_; }
    [[nodiscard]] const Model* operator->() const noexcept { return model_.get(); }
    [[nodiscard]] const std::shared_ptr<Model>& shared() const noexcept { return model_; }

   private:
    std::shared_ptr<Model> model_;
  };

 private:
  friend class ModelBuilder;
  Model(Config config, std::vector<Parameter> parameters)
      : config_(std::move(config)), parameters_(std::move(parameters)) {}

  Config config_;
  std::vector<Parameter> parameters_;
  std::uint64_t borrows_ = 0;
};

// Builds a model one parameter at a time, so that a loader can stream bytes to where they stay.
// After an error the builder is unchanged and can go on.
class ModelBuilder {
 public:
  // Errors: invalid_config, size_overflow.
  [[nodiscard]] static Result<ModelBuilder> create(const Config& config);

  [[nodiscard]] const std::vector<ParameterSpec>& specs() const noexcept { return specs_; }

  // The shape that a file gives for a parameter: [rows, cols], a vector [cols]. Bytes alone cannot
  // tell a matrix from its transpose. Errors: unknown_parameter, parameter_shape_mismatch.
  [[nodiscard]] Result<void> check_shape(std::string_view name,
                                         std::span<const std::uint64_t> shape) const;

  // Memory for one parameter, to be filled row-major in `dtype` and then sealed. It is not
  // initialised: every byte has to be written before `seal`, which reads them all.
  // Errors: unknown_parameter, duplicate_parameter, unsupported_dtype (a vector in blocks, or a row
  // that is not a whole number of blocks), out_of_memory.
  [[nodiscard]] Result<std::span<std::byte>> allocate(std::string_view name, DType dtype);

  // Checks what was written (every value or block scale finite) and packs it for the kernels.
  // Errors: missing_parameter (not allocated), duplicate_parameter (sealed already),
  // non_finite_parameter, out_of_memory. A rejected parameter is dropped; allocate it again.
  [[nodiscard]] Result<void> seal(std::string_view name);

  // allocate, copy, seal. Errors: as those, and parameter_size_mismatch.
  [[nodiscard]] Result<void> add(std::string_view name, DType dtype,
                                 std::span<const std::byte> bytes);

  // The model; the builder is empty afterwards. Errors: missing_parameter (the first one absent or
  // not sealed).
  [[nodiscard]] Result<std::shared_ptr<Model>> finish();

 private:
  struct Slot {
    DType dtype = DType::f32;
    Layout layout = Layout::rows;
    Buffer<std::byte> bytes;
    bool allocated = false;
    bool sealed = false;
  };
  ModelBuilder(Config config, std::vector<ParameterSpec> specs)
      : config_(std::move(config)), specs_(std::move(specs)), slots_(specs_.size()) {}
  [[nodiscard]] Result<std::size_t> index_of(std::string_view name) const;

  Config config_;
  std::vector<ParameterSpec> specs_;
  std::vector<Slot> slots_;
};

}  // namespace kvlens
