// Models and their builders.
#include <emscripten/bind.h>

#include <memory>
#include <string>

#include "kvlens/content_hash.h"
#include "marshal.h"
#include "streaming_builder.h"

namespace kvlens::js {
namespace {

using emscripten::class_;
using emscripten::function;
using emscripten::register_type;

using ModelPtr = std::shared_ptr<Model>;
using BuilderPtr = std::shared_ptr<StreamingBuilder>;

EMSCRIPTEN_BINDINGS(kvlens_models) {
  register_type<Specs>("SpecValue", "{ name: string; shape: number[] }");
  register_type<Parameters>(
      "{ name: string; dtype: string; shape: number[]; bytes: number; revision: number }[]");
  register_type<Doubles>("Float64Array<ArrayBuffer>");
  register_type<Outcome<Doubles>>("Outcome<Float64Array<ArrayBuffer>>");
  register_type<Outcome<Specs>>("Outcome<SpecValue[]>");
  register_type<Outcome<Model>>("Outcome<Model>");
  register_type<Outcome<StreamingBuilder>>("Outcome<ModelBuilder>");
  register_type<Outcome<RandomModel>>("Outcome<{ model: Model; rngState: bigint }>");
  class_<Model>("Model")
      .smart_ptr<ModelPtr>("ModelPtr")
      .function(
          "config()", +[](const Model& model) { return config_value(model.config()); })
      .function(
          "parameters()",
          +[](const Model& model) { return Parameters(parameters_value(model.parameters())); })
      .function(
          "liveSessions()",
          +[](const Model& model) { return static_cast<double>(model.live_sessions()); })
      .function(
          "parameterBytes()",
          +[](const Model& model) { return static_cast<double>(model.parameter_bytes()); })
      // Hash of the bytes as they lie in memory, which for a quantised matrix are not the file's.
      .function(
          "storedHash(index)",
          +[](const Model& model, std::size_t index) {
            return content_hash(model.parameters()[index].bytes.span());
          })
      .function(
          "readRows(name, rowBegin, size)",
          +[](const Model& model, const std::string& name, std::size_t row_begin,
              std::size_t size) {
            auto rows = Buffer<double>::uninitialised(size);
            if (!rows) return Outcome<Doubles>(failure(rows.error()));
            return outcome<Doubles>(
                model.read_rows(name, row_begin, rows->span()).transform([] { return true; }),
                [&](bool) {
                  return view(std::span<const double>(rows->span())).call<val>("slice");
                });
          })
      // Returns the hash of the new bytes.
      .function(
          "updateParameter(name, dtype, bytes)",
          +[](Model& model, const std::string& name, const std::string& dtype, const Bytes& array) {
            auto bytes = copy_in_bytes(array);
            if (!bytes) return Outcome<std::uint64_t>(failure(bytes.error()));
            return outcome<std::uint64_t>(
                model.update_parameter(name, dtype_named(dtype), bytes->span()).transform([&] {
                  return content_hash(bytes->span());
                }),
                [](std::uint64_t hash) { return hash; });
          });
  function(
      "randomModel(config, rngState, dtype)",
      +[](const ConfigValue& config, std::uint64_t rng_state, const std::string& dtype) {
        SplitMix64 rng(rng_state);
        return outcome<RandomModel>(Model::random(config_from(config), rng, dtype_named(dtype)),
                                    [&](const ModelPtr& model) {
                                      val value = val::object();
                                      value.set("model", model);
                                      value.set("rngState", rng.state());
                                      return value;
                                    });
      });

  class_<StreamingBuilder>("ModelBuilder")
      .smart_ptr<BuilderPtr>("ModelBuilderPtr")
      .function(
          "allocate(name, dtype)",
          +[](StreamingBuilder& builder, const std::string& name, const std::string& dtype) {
            return outcome<double>(builder.allocate(name, dtype_named(dtype)),
                                   [](std::size_t size) { return static_cast<double>(size); });
          })
      .function(
          "checkShape(name, shape)",
          +[](const StreamingBuilder& builder, const std::string& name, const Ids& shape) {
            const auto sizes = sizes_from(shape);
            return outcome(builder.check_shape(name, {sizes.begin(), sizes.end()}));
          })
      .function(
          "openView(name)",
          +[](const StreamingBuilder& builder, const std::string& name) {
            const std::span<std::byte> bytes = builder.open(name);
            return Bytes(view(std::span<const std::uint8_t>(
                reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
          })
      .function(
          "seal(name)",
          +[](StreamingBuilder& builder, const std::string& name) {
            return outcome<std::uint64_t>(builder.seal(name),
                                          [](std::uint64_t hash) { return hash; });
          })
      .function(
          "finish()", +[](StreamingBuilder& builder) {
            return outcome<Model>(builder.finish(), [](ModelPtr model) { return model; });
          });
  function(
      "createModelBuilder(config)", +[](const ConfigValue& config) {
        return outcome<StreamingBuilder>(StreamingBuilder::create(config_from(config)),
                                         [](BuilderPtr builder) { return builder; });
      });
  function(
      "parameterSpecs(config)", +[](const ConfigValue& value) {
        const Config config = config_from(value);
        return outcome<Specs>(validate(config).transform([&] { return parameter_specs(config); }),
                              [](const auto& specs) { return specs_value(specs); });
      });
}

}  // namespace
}  // namespace kvlens::js
