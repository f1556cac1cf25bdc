#include "kvlens/model.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/try.h"
#include "ops/packing.h"

namespace kvlens {
namespace {

std::uint64_t next_identity() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

std::unexpected<Error> unknown_parameter(std::string_view name) {
  return fail(ErrorCode::unknown_parameter, NameContext{std::string(name)},
              "the configuration has no parameter " + quoted(name));
}

// The bytes of a parameter stored as `dtype`. Errors: unsupported_dtype, size_overflow.
Result<std::size_t> storage_bytes(const ParameterSpec& spec, DType dtype) {
  const DTypeInfo info = dtype_info(dtype);
  if (spec.is_vector && is_quantised(dtype)) {
    return fail(ErrorCode::unsupported_dtype, NameContext{spec.name},
                spec.name + " is a vector and cannot be stored as " + std::string(info.name));
  }
  if (spec.cols % info.block_values != 0) {
    return fail(ErrorCode::unsupported_dtype, NameContext{spec.name},
                spec.name + " has rows of " + std::to_string(spec.cols) +
                    " values, not a whole number of " + std::string(info.name) + " blocks of " +
                    std::to_string(info.block_values));
  }
  const auto n_blocks = element_count({spec.rows, spec.cols / info.block_values}, info.block_bytes);
  if (!n_blocks) {
    return fail(ErrorCode::size_overflow, NoContext{},
                spec.name + " of " + std::to_string(spec.rows) + " x " + std::to_string(spec.cols) +
                    " values as " + std::string(info.name) + " does not fit the address space");
  }
  return *n_blocks * info.block_bytes;
}

Result<void> check_size(const ParameterSpec& spec, std::size_t expected, std::size_t actual) {
  if (expected != actual) {
    return fail(
        ErrorCode::parameter_size_mismatch, MismatchContext{expected, actual},
        spec.name + " takes " + std::to_string(expected) + " bytes, got " + std::to_string(actual));
  }
  return {};
}

Result<void> check_finite(const ParameterSpec& spec, DType dtype,
                          std::span<const std::byte> bytes) {
  if (const auto index = ops::first_non_finite_stored(dtype, bytes)) {
    return fail(ErrorCode::non_finite_parameter,
                ValueContext{spec.name, *index, std::numeric_limits<double>::quiet_NaN()},
                spec.name + " holds a value or block scale that is not finite at index " +
                    std::to_string(*index));
  }
  return {};
}

// Brings row-major bytes into the form the kernels read.
Result<Layout> pack_for_kernels(const ParameterSpec& spec, DType dtype,
                                std::span<std::byte> bytes) {
  if (spec.is_vector || !ops::can_pack(dtype)) return Layout::rows;
  const std::size_t group_bytes = bytes.size() / spec.rows * std::min(spec.rows, ops::packed_rows);
  KVLENS_TRY(auto scratch, Buffer<std::byte>::uninitialised(group_bytes));
  ops::pack(dtype, spec.rows, spec.cols, bytes, scratch.span());
  return Layout::packed;
}

template <class T>
void fill(const ParameterSpec& spec, SplitMix64& rng, std::span<std::byte> bytes) {
  const auto store = [&](std::size_t index, double value) {
    const T stored = static_cast<T>(value);
    std::memcpy(bytes.data() + index * sizeof(T), &stored, sizeof(T));
  };
  if (spec.is_vector) {
    const double constant = spec.name.ends_with("_bias") ? 0.0 : 1.0;
    for (std::size_t i = 0; i < spec.cols; ++i) store(i, constant);
    return;
  }
  const double limit = std::sqrt(6.0 / static_cast<double>(spec.rows + spec.cols));
  const auto draw = [&] { return limit * (2.0 * rng.unit() - 1.0); };
  const bool token_rows = spec.name == "token_embedding" || spec.name == "lm_head";
  if (token_rows) {
    for (std::size_t i = 0; i < spec.rows * spec.cols; ++i) store(i, draw());
  } else {
    for (std::size_t col = 0; col < spec.cols; ++col) {
      for (std::size_t row = 0; row < spec.rows; ++row) store(row * spec.cols + col, draw());
    }
  }
}

}  // namespace

std::vector<ParameterSpec> parameter_specs(const Config& config) {
  std::vector<ParameterSpec> specs;
  const auto matrix = [&](std::string name, std::size_t rows, std::size_t cols) {
    specs.push_back({std::move(name), rows, cols, false});
  };
  const auto vector = [&](std::string name, std::size_t size) {
    specs.push_back({std::move(name), 1, size, true});
  };
  matrix("token_embedding", config.vocab_size, config.d_model);
  for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
    const std::string prefix = "layers." + std::to_string(layer) + ".";
    vector(prefix + "attention_norm", config.d_model);
    matrix(prefix + "q_proj", config.q_width(), config.d_model);
    if (config.qkv_bias) vector(prefix + "q_bias", config.q_width());
    matrix(prefix + "k_proj", config.kv_width(), config.d_model);
    if (config.qkv_bias) vector(prefix + "k_bias", config.kv_width());
    matrix(prefix + "v_proj", config.kv_width(), config.d_model);
    if (config.qkv_bias) vector(prefix + "v_bias", config.kv_width());
    if (config.qk_norm) {
      vector(prefix + "q_norm", config.head_dim);
      vector(prefix + "k_norm", config.head_dim);
    }
    matrix(prefix + "o_proj", config.d_model, config.q_width());
    vector(prefix + "ffn_norm", config.d_model);
    matrix(prefix + "gate_proj", config.d_ff, config.d_model);
    matrix(prefix + "up_proj", config.d_ff, config.d_model);
    matrix(prefix + "down_proj", config.d_model, config.d_ff);
  }
  vector("final_norm", config.d_model);
  if (!config.tied_embedding) matrix("lm_head", config.vocab_size, config.d_model);
  return specs;
}

Result<std::shared_ptr<Model>> Model::random(const Config& config, SplitMix64& rng, DType dtype) {
  if (dtype != DType::f64 && dtype != DType::f32) {
    return fail(ErrorCode::unsupported_dtype, NameContext{std::string(dtype_info(dtype).name)},
                "random parameters are f64 or f32, not " + std::string(dtype_info(dtype).name));
  }
  KVLENS_TRY(ModelBuilder builder, ModelBuilder::create(config));
  SplitMix64 drawing = rng;
  for (const ParameterSpec& spec : builder.specs()) {
    KVLENS_TRY(const std::span<std::byte> bytes, builder.allocate(spec.name, dtype));
    if (dtype == DType::f64) {
      fill<double>(spec, drawing, bytes);
    } else {
      fill<float>(spec, drawing, bytes);
    }
    KVLENS_CHECK(builder.seal(spec.name));
  }
  KVLENS_TRY(auto model, builder.finish());
  rng = drawing;
  return model;
}

const Parameter* Model::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(
      parameters_, name, [](const Parameter& p) -> std::string_view { return p.spec.name; });
  return found == parameters_.end() ? nullptr : &*found;
}

std::uint64_t Model::parameter_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Parameter& parameter : parameters_) bytes += parameter.bytes.size();
  return bytes;
}

Result<void> Model::read_rows(std::string_view name, std::size_t row_begin,
                              std::span<double> out) const {
  const Parameter* parameter = find(name);
  if (parameter == nullptr) return unknown_parameter(name);
  const auto& [spec, dtype, layout, bytes, identity, revision] = *parameter;
  if (out.size() % spec.cols != 0) {
    return fail(ErrorCode::shape_mismatch, ShapeContext{spec.name, {spec.cols}, {out.size()}},
                spec.name + " has rows of " + std::to_string(spec.cols) + " values, " +
                    std::to_string(out.size()) + " is not a whole number of them");
  }
  const std::size_t n_rows = out.size() / spec.cols;
  if (row_begin > spec.rows || n_rows > spec.rows - row_begin) {
    return fail(
        ErrorCode::invalid_argument,
        FieldContext{"row_begin", std::to_string(row_begin), "0 to " + std::to_string(spec.rows)},
        spec.name + " has " + std::to_string(spec.rows) + " rows, asked for " +
            std::to_string(n_rows) + " from row " + std::to_string(row_begin));
  }
  const ops::MatrixView matrix{dtype, layout, spec.rows, spec.cols, bytes.data()};
  for (std::size_t row = 0; row < n_rows; ++row) {
    ops::dequantise_row(matrix, row_begin + row, out.subspan(row * spec.cols, spec.cols));
  }
  return {};
}

Result<void> Model::update_parameter(std::string_view name, DType dtype,
                                     std::span<const std::byte> bytes) {
  if (borrows_ != 0) {
    return fail(ErrorCode::parameter_borrowed, CountContext{borrows_},
                "cannot update " + quoted(name) + ": the model is held by " +
                    std::to_string(borrows_) + (borrows_ == 1 ? " session" : " sessions"));
  }
  const Parameter* found = find(name);
  if (found == nullptr) return unknown_parameter(name);
  Parameter& parameter = parameters_[static_cast<std::size_t>(found - parameters_.data())];
  KVLENS_TRY(const std::size_t size, storage_bytes(parameter.spec, dtype));
  KVLENS_CHECK(check_size(parameter.spec, size, bytes.size()));
  KVLENS_CHECK(check_finite(parameter.spec, dtype, bytes));
  KVLENS_TRY(auto copy, Buffer<std::byte>::uninitialised(size));
  std::ranges::copy(bytes, copy.data());
  KVLENS_TRY(const Layout layout, pack_for_kernels(parameter.spec, dtype, copy.span()));
  parameter.dtype = dtype;
  parameter.layout = layout;
  parameter.bytes = std::move(copy);
  ++parameter.revision;
  return {};
}

Result<ModelBuilder> ModelBuilder::create(const Config& config) {
  KVLENS_CHECK(validate(config));
  return ModelBuilder(config, parameter_specs(config));
}

Result<std::size_t> ModelBuilder::index_of(std::string_view name) const {
  const auto found = std::ranges::find(specs_, name, &ParameterSpec::name);
  if (found == specs_.end()) return unknown_parameter(name);
  return static_cast<std::size_t>(found - specs_.begin());
}

Result<void> ModelBuilder::check_shape(std::string_view name,
                                       std::span<const std::uint64_t> shape) const {
  KVLENS_TRY(const std::size_t index, index_of(name));
  const ParameterSpec& spec = specs_[index];
  const std::vector<std::uint64_t> expected =
      spec.is_vector ? std::vector<std::uint64_t>{spec.cols}
                     : std::vector<std::uint64_t>{spec.rows, spec.cols};
  if (!std::ranges::equal(shape, expected)) {
    const auto text = [](std::span<const std::uint64_t> dimensions) {
      std::string list;
      for (const std::uint64_t dimension : dimensions) {
        list += (list.empty() ? "" : ", ") + std::to_string(dimension);
      }
      return "[" + list + "]";
    };
    return fail(ErrorCode::parameter_shape_mismatch,
                ShapeContext{spec.name, expected, {shape.begin(), shape.end()}},
                spec.name + " has shape " + text(shape) + ", expected " + text(expected));
  }
  return {};
}

Result<std::span<std::byte>> ModelBuilder::allocate(std::string_view name, DType dtype) {
  KVLENS_TRY(const std::size_t index, index_of(name));
  Slot& slot = slots_[index];
  if (slot.allocated) {
    return fail(ErrorCode::duplicate_parameter, NameContext{std::string(name)},
                "parameter " + quoted(name) + " was already given");
  }
  KVLENS_TRY(const std::size_t size, storage_bytes(specs_[index], dtype));
  KVLENS_TRY(slot.bytes, Buffer<std::byte>::uninitialised(size));
  slot.dtype = dtype;
  slot.allocated = true;
  return slot.bytes.span();
}

Result<void> ModelBuilder::seal(std::string_view name) {
  KVLENS_TRY(const std::size_t index, index_of(name));
  Slot& slot = slots_[index];
  if (!slot.allocated) {
    return fail(ErrorCode::missing_parameter, NameContext{std::string(name)},
                "parameter " + quoted(name) + " has no memory to seal");
  }
  if (slot.sealed) {
    return fail(ErrorCode::duplicate_parameter, NameContext{std::string(name)},
                "parameter " + quoted(name) + " is already sealed");
  }
  if (auto finite = check_finite(specs_[index], slot.dtype, slot.bytes.span()); !finite) {
    slot = Slot{};
    return finite;
  }
  auto layout = pack_for_kernels(specs_[index], slot.dtype, slot.bytes.span());
  if (!layout) {
    slot = Slot{};
    return std::unexpected(std::move(layout).error());
  }
  slot.layout = *layout;
  slot.sealed = true;
  return {};
}

Result<void> ModelBuilder::add(std::string_view name, DType dtype,
                               std::span<const std::byte> bytes) {
  KVLENS_TRY(const std::size_t index, index_of(name));
  KVLENS_TRY(const std::size_t size, storage_bytes(specs_[index], dtype));
  KVLENS_CHECK(check_size(specs_[index], size, bytes.size()));
  KVLENS_TRY(const std::span<std::byte> storage, allocate(name, dtype));
  std::ranges::copy(bytes, storage.data());
  return seal(name);
}

Result<std::shared_ptr<Model>> ModelBuilder::finish() {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (!slots_[index].sealed) {
      const std::string& name = specs_[index].name;
      return fail(ErrorCode::missing_parameter, NameContext{name},
                  "parameter " + quoted(name) + " is missing");
    }
  }
  std::vector<Parameter> parameters;
  parameters.reserve(slots_.size());
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    Slot& slot = slots_[index];
    parameters.push_back({.spec = specs_[index],
                          .dtype = slot.dtype,
                          .layout = slot.layout,
                          .bytes = std::move(slot.bytes),
                          .identity = next_identity(),
                          .revision = 0});
    slot = Slot{};
  }
  return std::shared_ptr<Model>(new Model(config_, std::move(parameters)));
}

}  // namespace kvlens
