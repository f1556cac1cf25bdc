// Sessions, their savepoints and replays, and the recorders of evidence that calls can take.
#include <emscripten/bind.h>

#include <memory>
#include <optional>
#include <utility>

#include "bindings/either.h"
#include "kvlens/thread_pool.h"
#include "marshal.h"

namespace kvlens::js {
namespace {

using emscripten::allow_raw_pointers;
using emscripten::class_;
using emscripten::function;
using emscripten::register_type;

// For the tag of an Outcome; the two say nothing of the compute type.
struct StepTag;
struct ReplayTag;

double as_number(std::size_t count) { return static_cast<double>(count); }

template <class T>
Outcome<StepTag> step_outcome(Result<Step<T>> step) {
  return outcome<StepTag>(std::move(step), step_value<T>);
}

void register_recorders() {
  class_<AnyRecorder>("Recorder")
      .function(
          "nRecords()",
          +[](const AnyRecorder& any) {
            return any.visit([](auto& recorder) { return recorder.records().size(); });
          })
      .function(
          "stage(index)",
          +[](const AnyRecorder& any, std::size_t index) {
            return any.visit([&](auto& recorder) {
              return static_cast<unsigned>(recorder.records()[index].site.stage);
            });
          })
      .function(
          "layer(index)",
          +[](const AnyRecorder& any, std::size_t index) {
            return any.visit([&](auto& recorder) { return recorder.records()[index].site.layer; });
          })
      .function(
          "position(index)",
          +[](const AnyRecorder& any, std::size_t index) {
            return any.visit(
                [&](auto& recorder) { return recorder.records()[index].site.position; });
          })
      .function(
          "valuesView(index)", +[](const AnyRecorder& any, std::size_t index) {
            return any.visit([&](auto& recorder) {
              return Floats(view(recorder.records()[index].values.span()));
            });
          });
  function(
      "createRecorder(model, doubles, all, layers, firstPosition)",
      +[](const Model& model, bool doubles, bool all, const Ids& layers,
          std::size_t first_position) {
        const auto make = [&]<class T>(T) {
          return either(RowRecorder<T>(model.config(), all ? Capture::all : Capture::attention,
                                       sizes_from(layers), first_position));
        };
        return doubles ? make(double{}) : make(float{});
      });
}

void register_replays() {
  register_type<Outcome<AnyReplay>>("Outcome<Replay>");
  register_type<Outcome<ReplayTag>>("Outcome<{ logits: Logits; work: WorkCounters }>");
  // It refers to its session, which must be deleted after it.
  class_<AnyReplay>("Replay")
      .function(
          "nSteps()",
          +[](const AnyReplay& any) {
            return any.visit([](auto& replay) { return replay.n_steps(); });
          })
      .function(
          "advance(recorder)",
          +[](const AnyReplay& any, AnyRecorder* recorder) {
            return any.visit([&]<class T>(StepwiseReplay<T>& replay) {
              return outcome<double>(replay.advance(tap_of<T>(recorder)), as_number);
            });
          },
          allow_raw_pointers())
      .function(
          "finish(recorder)",
          +[](const AnyReplay& any, AnyRecorder* recorder) {
            return any.visit([&]<class T>(StepwiseReplay<T>& replay) {
              return outcome<ReplayTag>(replay.finish(tap_of<T>(recorder)), [](Replay<T> done) {
                val value = val::object();
                value.set("work", work_value(done.work));
                value.set("logits", either(std::move(done.logits)));
                return value;
              });
            });
          },
          allow_raw_pointers());
  class_<AnyLogits>("Logits").function(
      "view()", +[](const AnyLogits& any) {
        return any.visit(
            []<class T>(Buffer<T>& logits) { return Floats(view(std::as_const(logits).span())); });
      });
}

void register_calls(class_<AnySession>& session) {
  session
      .function(
          "prefill(tokens, recorder)",
          +[](const AnySession& any, const Ids& tokens, AnyRecorder* recorder) {
            return with_ids<StepTag>(tokens, [&](auto ids) {
              return any.visit([&]<class T>(Session<T>& target) {
                return step_outcome(target.prefill(ids, tap_of<T>(recorder)));
              });
            });
          },
          allow_raw_pointers())
      .function(
          "decode(token, recorder)",
          +[](const AnySession& any, std::uint32_t token, AnyRecorder* recorder) {
            return any.visit([&]<class T>(Session<T>& target) {
              return step_outcome(target.decode(token, tap_of<T>(recorder)));
            });
          },
          allow_raw_pointers())
      .function(
          "extend(tokens, recorder)",
          +[](const AnySession& any, const Ids& tokens, AnyRecorder* recorder) {
            return with_ids<StepTag>(tokens, [&](auto ids) {
              return any.visit([&]<class T>(Session<T>& target) {
                return step_outcome(target.extend(ids, tap_of<T>(recorder)));
              });
            });
          },
          allow_raw_pointers())
      .function(
          "begin(prefill, tokens)",
          +[](const AnySession& any, bool prefill, const Ids& tokens) {
            return with_ids<void>(tokens, [&](auto ids) {
              return any.visit([&]<class T>(Session<T>& target) {
                using Phase = Session<T>::Phase;
                return outcome(target.begin(prefill ? Phase::prefill : Phase::extend, ids));
              });
            });
          })
      .function(
          "advance(recorder)",
          +[](const AnySession& any, AnyRecorder* recorder) {
            return any.visit([&]<class T>(Session<T>& target) {
              return outcome<double>(target.advance(tap_of<T>(recorder)), as_number);
            });
          },
          allow_raw_pointers())
      .function(
          "finish(recorder)",
          +[](const AnySession& any, AnyRecorder* recorder) {
            return any.visit([&]<class T>(Session<T>& target) {
              return step_outcome(target.finish(tap_of<T>(recorder)));
            });
          },
          allow_raw_pointers())
      .function(
          "abandon()",
          +[](const AnySession& any) { any.visit([](auto& target) { target.abandon(); }); })
      .function(
          "beginReplay(tokens, allLogits)",
          +[](const AnySession& any, const Ids& tokens, bool all_logits) {
            return with_ids<AnyReplay>(tokens, [&](auto ids) {
              return any.visit([&]<class T>(Session<T>& target) {
                return outcome<AnyReplay>(target.begin_replay(ids, all_logits),
                                          either<StepwiseReplay, T>);
              });
            });
          });
}

void register_changes(class_<AnySession>& session) {
  session
      .function(
          "truncate(len)",
          +[](const AnySession& any, std::size_t len) {
            return any.visit([&](auto& target) { return outcome(target.truncate(len)); });
          })
      .function(
          "clear()",
          +[](const AnySession& any) { any.visit([](auto& target) { target.clear(); }); })
      .function(
          "reset()",
          +[](const AnySession& any) { any.visit([](auto& target) { target.reset(); }); })
      .function(
          "savepoint()",
          +[](const AnySession& any) {
            return any.visit([]<class T>(Session<T>& target) {
              return outcome<AnySavepoint>(target.savepoint(), either<Savepoint, T>);
            });
          })
      .function(
          "rollback(savepoint)", +[](const AnySession& any, const AnySavepoint& savepoint) {
            return any.visit([&]<class T>(Session<T>& target) {
              return outcome(target.rollback(*savepoint.as<T>()));
            });
          });
}

void register_state(class_<AnySession>& session) {
  session
      .function(
          "callInProgress()",
          +[](const AnySession& any) {
            return any.visit([](auto& target) { return target.call_in_progress(); });
          })
      .function(
          "work()",
          +[](const AnySession& any) {
            return any.visit([](auto& target) { return work_value(target.work()); });
          })
      .function(
          "kvLen()",
          +[](const AnySession& any) {
            return any.visit([](auto& target) { return target.kv_len(); });
          })
      .function(
          "logitsView()",
          +[](const AnySession& any) {
            return any.visit([](auto& target) { return Floats(view(target.logits())); });
          })
      .function(
          "hasLogits()", +[](const AnySession& any) {
            return any.visit([](auto& target) { return !target.logits().empty(); });
          });
}

void register_choices(class_<AnySession>& session) {
  session
      .function(
          "topTokens(n)",
          +[](const AnySession& any, std::size_t n) {
            return any.visit([&](auto& target) {
              return outcome<Ranked>(top_tokens(target.logits(), n),
                                     [](const auto& tokens) { return ranked_value(tokens); });
            });
          })
      .function(
          "sample(sampling, rngState, recent)",
          +[](const AnySession& any, const SamplingValue& sampling, std::uint64_t rng_state,
              const Ids& recent) {
            return with_ids<DrawAndState>(recent, [&](auto ids) {
              SplitMix64 rng(rng_state);
              return any.visit([&](auto& target) {
                return outcome<DrawAndState>(
                    sample(target.logits(), sampling_from(sampling), rng, ids),
                    [&](const Draw& draw) {
                      val value = val::object();
                      value.set("draw", draw_value(draw));
                      value.set("rngState", rng.state());
                      return value;
                    });
              });
            });
          })
      .function(
          "generate(prompt, maxNewTokens, eosToken, sampling, rngState)",
          +[](const AnySession& any, const Ids& prompt, std::size_t max_new_tokens,
              std::optional<std::uint32_t> eos_token, const SamplingValue& sampling,
              std::uint64_t rng_state) {
            return with_ids<GenerationAndState>(prompt, [&](auto ids) {
              SplitMix64 rng(rng_state);
              const GenerateRequest request{.prompt = ids,
                                            .max_new_tokens = max_new_tokens,
                                            .eos_token = eos_token,
                                            .sampling = sampling_from(sampling)};
              return any.visit([&](auto& target) {
                return outcome<GenerationAndState>(generate(target, request, rng),
                                                   [&](const Generation& generation) {
                                                     return generation_value(generation, rng);
                                                   });
              });
            });
          });
}

EMSCRIPTEN_BINDINGS(kvlens_sessions) {
  emscripten::register_optional<std::uint32_t>();
  register_type<Floats>("Float32Array | Float64Array");
  register_type<Outcome<StepTag>>("Outcome<StepValue>");
  register_type<Typed<StepTag>>(
      "StepValue",
      "{ logits: Float32Array | Float64Array; position: number; kvLenBefore: number; "
      "kvLen: number; rowAttentionScoreValues: number; work: WorkCounters }");
  register_type<SamplingValue>(
      "SamplingValue",
      "{ greedy: boolean; temperature: number; topK: number; topP: number; "
      "minP: number; repetitionPenalty: number }");
  register_type<Typed<Draw>>("DrawValue",
                             "{ token: number; probability: number; unitDraw?: number; "
                             "interval: [number, number]; candidates: number }");
  register_type<Outcome<DrawAndState>>("Outcome<{ draw: DrawValue; rngState: bigint }>");
  register_type<Outcome<GenerationAndState>>(
      "Outcome<{ tokens: Uint32Array<ArrayBuffer>; stop: 'eos' | 'token_limit' | 'context_limit'; "
      "steps: { prefixLength: number; draw: DrawValue }[]; work: WorkCounters; rngState: bigint "
      "}>");
  register_type<Outcome<Ranked>>("Outcome<number[]>");
  register_type<Outcome<AnySession>>("Outcome<Session>");
  register_type<Outcome<AnySavepoint>>("Outcome<Savepoint>");
  register_recorders();
  register_replays();
  // It refers to its session, which must be deleted after it.
  class_<AnySavepoint>("Savepoint");
  class_<AnySession> session("Session");
  register_calls(session);
  register_changes(session);
  register_state(session);
  register_choices(session);
  function(
      "bind(model, cache, chunkRows, pool)",
      +[](std::shared_ptr<Model> model, const AnyCache& any, std::size_t chunk_rows,
          std::shared_ptr<ThreadPool> pool) {
        return any.visit([&]<class T>(KvCache<T>&) {
          return outcome<AnySession>(
              Session<T>::bind(std::move(model), any.as<T>(),
                               {.chunk_rows = chunk_rows, .pool = std::move(pool)}),
              [](std::unique_ptr<Session<T>> session) {
                return AnySession(std::shared_ptr<Session<T>>(std::move(session)));
              });
        });
      });
}

}  // namespace
}  // namespace kvlens::js
