// Registrations only: what JavaScript can call, and how it is declared in TypeScript.
//
// The names and shapes here are internal to the package: web/src/core wraps them, checks every
// argument, and compiles against the declarations that this file emits.
#include <emscripten/bind.h>
#include <emscripten/heap.h>

#include <memory>
#include <string>

#include "kvlens/thread_pool.h"
#include "marshal.h"
#include "row_recorder.h"
#include "streaming_builder.h"

namespace kvlens::js {
namespace {

using emscripten::allow_raw_pointers;
using emscripten::class_;
using emscripten::function;
using emscripten::register_type;

using ModelPtr = std::shared_ptr<Model>;
using BuilderPtr = std::shared_ptr<StreamingBuilder>;
using PoolPtr = std::shared_ptr<ThreadPool>;
template <class T>
using CachePtr = std::shared_ptr<KvCache<T>>;
template <class T>
using SessionPtr = std::shared_ptr<Session<T>>;
template <class T>
using ReplayPtr = std::shared_ptr<StepwiseReplay<T>>;
template <class T>
using Recorder = RowRecorder<T>;
template <class T>
using Logits = Buffer<T>;

// Names of everything that exists once for each compute type.
template <class T>
struct Named;
template <>
struct Named<float> {
  static constexpr const char* floats = "Float32Array";
  static constexpr const char* cache = "KvCacheF32";
  static constexpr const char* session = "SessionF32";
  static constexpr const char* recorder = "RecorderF32";
  static constexpr const char* replay = "ReplayF32";
  static constexpr const char* logits = "LogitsF32";
  static constexpr const char* savepoint = "SavepointF32";
  static constexpr const char* create_cache = "createCacheF32(model, capacity, dtype)";
  static constexpr const char* bind = "bindF32(model, cache, chunkRows, pool)";
  static constexpr const char* create_recorder =
      "createRecorderF32(model, all, layers, firstPosition)";
  static constexpr const char* cache_outcome = "Outcome<KvCacheF32>";
  static constexpr const char* session_outcome = "Outcome<SessionF32>";
  static constexpr const char* step_outcome = "Outcome<StepValue<Float32Array>>";
  static constexpr const char* begun_replay_outcome = "Outcome<ReplayF32>";
  static constexpr const char* replay_outcome = "Outcome<ReplayValue<LogitsF32>>";
  static constexpr const char* savepoint_outcome = "Outcome<SavepointF32>";
};
template <>
struct Named<double> {
  static constexpr const char* floats = "Float64Array";
  static constexpr const char* cache = "KvCacheF64";
  static constexpr const char* session = "SessionF64";
  static constexpr const char* recorder = "RecorderF64";
  static constexpr const char* replay = "ReplayF64";
  static constexpr const char* logits = "LogitsF64";
  static constexpr const char* savepoint = "SavepointF64";
  static constexpr const char* create_cache = "createCacheF64(model, capacity, dtype)";
  static constexpr const char* bind = "bindF64(model, cache, chunkRows, pool)";
  static constexpr const char* create_recorder =
      "createRecorderF64(model, all, layers, firstPosition)";
  static constexpr const char* cache_outcome = "Outcome<KvCacheF64>";
  static constexpr const char* session_outcome = "Outcome<SessionF64>";
  static constexpr const char* step_outcome = "Outcome<StepValue<Float64Array>>";
  static constexpr const char* begun_replay_outcome = "Outcome<ReplayF64>";
  static constexpr const char* replay_outcome = "Outcome<ReplayValue<LogitsF64>>";
  static constexpr const char* savepoint_outcome = "Outcome<SavepointF64>";
};

DType dtype_named(const std::string& name) { return dtype_from_name(name).value_or(DType::f32); }

void register_types() {
  register_type<Failure>(
      "Failure",
      "{ ok: false; code: string; message: string; context: object; "
      "site: { stage: string; layer: number; position: number } | null; cause: Failure | null }");
  register_type<Outcome<struct AnyTag>>("Outcome<T>", "{ ok: true; value: T } | Failure");
  register_type<Typed<struct StepTag>>(
      "StepValue<A>",
      "{ logits: A; position: number; kvLenBefore: number; kvLen: number; "
      "rowAttentionScoreValues: number; work: Float64Array }");
  register_type<Typed<struct ReplayTag>>("ReplayValue<L>", "{ logits: L; work: Float64Array }");
  register_type<ConfigValue>("ConfigValue", R"({
  nLayers: number; nHeads: number; nKvHeads: number; headDim: number; dModel: number; dFf: number;
  vocabSize: number; maxSeqLen: number; rmsNormEps: number;
  rope: { pairing: 'interleaved' | 'half_split'; theta: number; freqFactors: readonly number[] };
  qkvBias: boolean; qkNorm: boolean; tiedEmbedding: boolean; slidingWindow: number;
})");
  register_type<SamplingValue>(
      "SamplingValue",
      "{ greedy: boolean; temperature: number; topK: number; topP: number; "
      "minP: number; repetitionPenalty: number }");
  register_type<Typed<Draw>>("DrawValue",
                             "{ token: number; probability: number; unitDraw?: number; "
                             "interval: [number, number]; candidates: number }");
  register_type<Names>("string[]");
  register_type<Bytes>("Uint8Array");
  register_type<Ids>("Uint32Array");
  register_type<Hashes>("bigint[]");
  register_type<Doubles>("Float64Array<ArrayBuffer>");
  register_type<WorkValue>("Float64Array");
  register_type<DTypes>("{ name: string; blockValues: number; blockBytes: number }[]");
  register_type<Specs>("SpecValue", "{ name: string; shape: number[] }");
  register_type<Parameters>(
      "{ name: string; dtype: string; shape: number[]; bytes: number; revision: number }[]");
  register_type<Outcome<void>>("Outcome<null>");
  register_type<Outcome<double>>("Outcome<number>");
  register_type<Outcome<std::uint64_t>>("Outcome<bigint>");
  register_type<Outcome<Doubles>>("Outcome<Float64Array<ArrayBuffer>>");
  register_type<Outcome<Specs>>("Outcome<SpecValue[]>");
  register_type<Outcome<Model>>("Outcome<Model>");
  register_type<Outcome<StreamingBuilder>>("Outcome<ModelBuilder>");
  register_type<Outcome<ThreadPool>>("Outcome<ThreadPool>");
  register_type<Outcome<RandomModel>>("Outcome<{ model: Model; rngState: bigint }>");
  register_type<Outcome<DrawAndState>>("Outcome<{ draw: DrawValue; rngState: bigint }>");
  register_type<Outcome<GenerationAndState>>(
      "Outcome<{ tokens: Uint32Array<ArrayBuffer>; stop: 'eos' | 'token_limit' | 'context_limit'; "
      "steps: { prefixLength: number; draw: DrawValue }[]; work: Float64Array; rngState: bigint "
      "}>");
  register_type<Outcome<Ranked>>("Outcome<number[]>");
  register_type<Outcome<Contrast>>(
      "Outcome<{ cachedScoreValues: number; replayScoreValues: number; avoidedScoreValues: number; "
      "cachedProjectionRows: number; replayProjectionRows: number; avoidedProjectionRows: number "
      "}>");
}

void register_module() {
  function("version()", +[] { return std::string(KVLENS_VERSION); });
  function("errorCodeNames()", &error_code_names);
  function("stageNames()", &stage_names);
  function("workCounterNames()", &work_counter_names);
  function("dtypes()", &dtypes_value);
  function("liveBuffers()", +[] { return static_cast<double>(memory::live_buffers()); });
  function("liveBytes()", +[] { return static_cast<double>(memory::live_bytes()); });
  function("heapBytes()", +[] { return static_cast<double>(emscripten_get_heap_size()); });
  // So that the package's tests can have any allocation fail.
  function(
      "failAllocationsAfter(successes)",
      +[](double successes) { memory::fail_after(static_cast<std::uint64_t>(successes)); });
  function("clearAllocationFailure()", &memory::clear_failure);
  // So that they can see every code and every context cross over.
  function("exampleFailure(code, context)", &example_failure);
  function(
      "parameterSpecs(config)", +[](const ConfigValue& value) {
        const Config config = config_from(value);
        return outcome<Specs>(validate(config).transform([&] { return parameter_specs(config); }),
                              [](const auto& specs) { return specs_value(specs); });
      });
  function(
      "contrast(config, cachedLengths, cachedWork, replayLengths, replayWork)",
      +[](const ConfigValue& config, const Ids& cached_lengths, const WorkValue& cached_work,
          const Ids& replay_lengths, const WorkValue& replay_work) {
        const auto cached = sizes_from(cached_lengths);
        const auto replay = sizes_from(replay_lengths);
        return outcome<Contrast>(
            contrast(config_from(config),
                     {.prefix_lengths = cached, .work = work_from(cached_work)},
                     {.prefix_lengths = replay, .work = work_from(replay_work)}),
            contrast_value);
      });
  class_<ThreadPool>("ThreadPool")
      .smart_ptr<PoolPtr>("ThreadPoolPtr")
      .function("nThreads()", &ThreadPool::n_threads);
  function(
      "createThreadPool(nThreads)", +[](std::size_t n_threads) {
        return outcome<ThreadPool>(ThreadPool::create(n_threads),
                                   [](PoolPtr pool) { return pool; });
      });
}

void register_models() {
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
      // Of the bytes as they lie in memory: for a quantised matrix not those of the file.
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
      // The hash of the new bytes.
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
}

// Fills a JavaScript array, [.., head_dim], with rows of a cache.
template <class T, auto read>
Outcome<void> read_rows(const KvCache<T>& cache, std::size_t layer, std::size_t kv_head,
                        std::size_t row_begin, const Floats<T>& out) {
  auto rows = Buffer<T>::uninitialised(out["length"].template as<std::size_t>());
  if (!rows) return Outcome<void>(failure(rows.error()));
  (cache.layers()[layer].*read)(0, kv_head, row_begin, rows->span());
  out.template call<void>("set", view(std::span<const T>(rows->span())));
  return outcome(Result<void>());
}

template <class T>
void register_caches() {
  class_<KvCache<T>>(Named<T>::cache)
      .template smart_ptr<CachePtr<T>>(typeid(CachePtr<T>).name())
      .function("len()", &KvCache<T>::len)
      .function("capacity()", &KvCache<T>::capacity)
      .function(
          "bytes()", +[](const KvCache<T>& cache) { return static_cast<double>(cache.bytes()); })
      .function(
          "tokensView()", +[](const KvCache<T>& cache) { return Ids(view(cache.tokens())); })
      .function(
          "layerLen(layer)",
          +[](const KvCache<T>& cache, std::size_t layer) { return cache.layers()[layer].len(); })
      .function("readKeys(layer, kvHead, rowBegin, out)",
                &read_rows<T, &LayerKvCache<T>::read_keys>)
      .function("readValues(layer, kvHead, rowBegin, out)",
                &read_rows<T, &LayerKvCache<T>::read_values>)
      // One for each length.
      .function(
          "contentHashes(layer, lengths)",
          +[](const KvCache<T>& cache, std::size_t layer, const Ids& array) {
            const std::vector<std::size_t> lengths = sizes_from(array);
            std::vector<std::uint64_t> hashes(lengths.size());
            cache.layers()[layer].content_hashes(lengths, hashes);
            return Hashes(val::array(hashes));
          });
  register_type<Floats<T>>(Named<T>::floats);
  register_type<Outcome<KvCache<T>>>(Named<T>::cache_outcome);
  function(
      Named<T>::create_cache,
      +[](const Model& model, std::size_t capacity, const std::string& dtype) {
        return outcome<KvCache<T>>(KvCache<T>::create(model, capacity, dtype_named(dtype)),
                                   [](CachePtr<T> cache) { return cache; });
      });
}

template <class T>
void register_recorders() {
  class_<Recorder<T>>(Named<T>::recorder)
      .function(
          "nRecords()", +[](const Recorder<T>& recorder) { return recorder.records().size(); })
      .function(
          "stage(index)",
          +[](const Recorder<T>& recorder, std::size_t index) {
            return static_cast<unsigned>(recorder.records()[index].site.stage);
          })
      .function(
          "layer(index)", +[](const Recorder<T>& recorder,
                              std::size_t index) { return recorder.records()[index].site.layer; })
      .function(
          "position(index)",
          +[](const Recorder<T>& recorder, std::size_t index) {
            return recorder.records()[index].site.position;
          })
      .function(
          "valuesView(index)", +[](const Recorder<T>& recorder, std::size_t index) {
            return Floats<T>(view(recorder.records()[index].values.span()));
          });
  function(
      Named<T>::create_recorder,
      +[](const Model& model, bool all, const Ids& layers, std::size_t first_position) {
        return std::make_unique<Recorder<T>>(model.config(),
                                             all ? Capture::all : Capture::attention,
                                             sizes_from(layers), first_position);
      });
}

template <class T>
void register_replays() {
  using R = StepwiseReplay<T>;
  register_type<Outcome<R>>(Named<T>::begun_replay_outcome);
  register_type<Outcome<Replay<T>>>(Named<T>::replay_outcome);
  class_<R>(Named<T>::replay)
      .template smart_ptr<ReplayPtr<T>>(typeid(ReplayPtr<T>).name())
      .function("nSteps()", &R::n_steps)
      .function(
          "advance(recorder)",
          +[](R& replay, Recorder<T>* recorder) {
            return outcome<double>(replay.advance(recorder),
                                   [](std::size_t left) { return static_cast<double>(left); });
          },
          allow_raw_pointers())
      .function(
          "finish(recorder)",
          +[](R& replay, Recorder<T>* recorder) {
            return outcome<Replay<T>>(replay.finish(recorder), [](Replay<T> done) {
              val value = val::object();
              value.set("work", work_value(done.work));
              value.set("logits", std::make_shared<Logits<T>>(std::move(done.logits)));
              return value;
            });
          },
          allow_raw_pointers());
  class_<Logits<T>>(Named<T>::logits)
      .template smart_ptr<std::shared_ptr<Logits<T>>>(typeid(std::shared_ptr<Logits<T>>).name())
      .function("view()", +[](const Logits<T>& logits) { return Floats<T>(view(logits.span())); });
}

template <class T>
void register_sessions() {
  using S = Session<T>;
  using StepOutcome = Outcome<Step<T>>;
  register_type<Outcome<S>>(Named<T>::session_outcome);
  register_type<StepOutcome>(Named<T>::step_outcome);
  register_type<Outcome<Savepoint<T>>>(Named<T>::savepoint_outcome);
  // It refers to its session, which has to be deleted after it.
  class_<Savepoint<T>>(Named<T>::savepoint)
      .template smart_ptr<std::shared_ptr<Savepoint<T>>>(
          typeid(std::shared_ptr<Savepoint<T>>).name());
  class_<S>(Named<T>::session)
      .template smart_ptr<SessionPtr<T>>(typeid(SessionPtr<T>).name())
      .function(
          "prefill(tokens, recorder)",
          +[](S& session, const Ids& tokens, Recorder<T>* recorder) {
            return with_ids<Step<T>>(tokens, [&](auto ids) {
              return outcome<Step<T>>(session.prefill(ids, recorder), step_value<T>);
            });
          },
          allow_raw_pointers())
      .function(
          "decode(token, recorder)",
          +[](S& session, std::uint32_t token, Recorder<T>* recorder) {
            return outcome<Step<T>>(session.decode(token, recorder), step_value<T>);
          },
          allow_raw_pointers())
      .function(
          "extend(tokens, recorder)",
          +[](S& session, const Ids& tokens, Recorder<T>* recorder) {
            return with_ids<Step<T>>(tokens, [&](auto ids) {
              return outcome<Step<T>>(session.extend(ids, recorder), step_value<T>);
            });
          },
          allow_raw_pointers())
      .function(
          "beginPrefill(tokens)",
          +[](S& session, const Ids& tokens) {
            return with_ids<void>(
                tokens, [&](auto ids) { return outcome(session.begin(S::Phase::prefill, ids)); });
          })
      .function(
          "beginExtend(tokens)",
          +[](S& session, const Ids& tokens) {
            return with_ids<void>(
                tokens, [&](auto ids) { return outcome(session.begin(S::Phase::extend, ids)); });
          })
      .function(
          "advance(recorder)",
          +[](S& session, Recorder<T>* recorder) {
            return outcome<double>(session.advance(recorder),
                                   [](std::size_t left) { return static_cast<double>(left); });
          },
          allow_raw_pointers())
      .function(
          "finish(recorder)",
          +[](S& session, Recorder<T>* recorder) {
            return outcome<Step<T>>(session.finish(recorder), step_value<T>);
          },
          allow_raw_pointers())
      .function("abandon()", &S::abandon)
      .function("callInProgress()", &S::call_in_progress)
      // What it returns reads the session, which has to be deleted after it.
      .function(
          "beginReplay(tokens, allLogits)",
          +[](const S& session, const Ids& tokens, bool all_logits) {
            return with_ids<StepwiseReplay<T>>(tokens, [&](auto ids) {
              return outcome<StepwiseReplay<T>>(
                  session.begin_replay(ids, all_logits), [](StepwiseReplay<T> replay) {
                    return std::make_shared<StepwiseReplay<T>>(std::move(replay));
                  });
            });
          })
      .function(
          "truncate(len)",
          +[](S& session, std::size_t len) { return outcome(session.truncate(len)); })
      .function("clear()", &S::clear)
      .function("reset()", &S::reset)
      .function(
          "savepoint()",
          +[](S& session) {
            return outcome<Savepoint<T>>(session.savepoint(), [](Savepoint<T> savepoint) {
              return std::make_shared<Savepoint<T>>(std::move(savepoint));
            });
          })
      .function(
          "rollback(savepoint)",
          +[](S& session, const Savepoint<T>& savepoint) {
            return outcome(session.rollback(savepoint));
          })
      .function(
          "work()", +[](const S& session) { return work_value(session.work()); })
      .function("kvLen()", &S::kv_len)
      .function(
          "logitsView()", +[](const S& session) { return Floats<T>(view(session.logits())); })
      .function(
          "hasLogits()", +[](const S& session) { return !session.logits().empty(); })
      .function(
          "topTokens(n)",
          +[](const S& session, std::size_t n) {
            return outcome<Ranked>(top_tokens(session.logits(), n),
                                   [](const auto& tokens) { return ranked_value(tokens); });
          })
      .function(
          "sample(sampling, rngState, recent)",
          +[](const S& session, const SamplingValue& sampling, std::uint64_t rng_state,
              const Ids& recent) {
            return with_ids<DrawAndState>(recent, [&](auto ids) {
              SplitMix64 rng(rng_state);
              return outcome<DrawAndState>(
                  sample(session.logits(), sampling_from(sampling), rng, ids),
                  [&](const Draw& draw) {
                    val value = val::object();
                    value.set("draw", draw_value(draw));
                    value.set("rngState", rng.state());
                    return value;
                  });
            });
          })
      .function(
          "generate(prompt, maxNewTokens, eosToken, sampling, rngState, cached)",
          +[](S& session, const Ids& prompt, std::size_t max_new_tokens,
              std::optional<std::uint32_t> eos_token, const SamplingValue& sampling,
              std::uint64_t rng_state, bool cached) {
            return with_ids<GenerationAndState>(prompt, [&](auto ids) {
              SplitMix64 rng(rng_state);
              const GenerateRequest request{.prompt = ids,
                                            .max_new_tokens = max_new_tokens,
                                            .eos_token = eos_token,
                                            .sampling = sampling_from(sampling)};
              return outcome<GenerationAndState>(
                  cached ? generate(session, request, rng)
                         : generate_uncached(session, request, rng),
                  [&](const Generation& generation) { return generation_value(generation, rng); });
            });
          });
  function(
      Named<T>::bind, +[](ModelPtr model, CachePtr<T> cache, std::size_t chunk_rows, PoolPtr pool) {
        return outcome<S>(
            S::bind(std::move(model), std::move(cache),
                    {.chunk_rows = chunk_rows, .pool = std::move(pool)}),
            [](std::unique_ptr<S> session) { return SessionPtr<T>(std::move(session)); });
      });
}

EMSCRIPTEN_BINDINGS(kvlens) {
  emscripten::register_optional<std::uint32_t>();
  register_types();
  register_module();
  register_models();
  register_caches<float>();
  register_caches<double>();
  register_recorders<float>();
  register_recorders<double>();
  register_replays<float>();
  register_replays<double>();
  register_sessions<float>();
  register_sessions<double>();
}

}  // namespace
}  // namespace kvlens::js
