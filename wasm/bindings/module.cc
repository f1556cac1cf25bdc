// What the module is as a whole: its tables, its memory, its threads, and the contrast.
#include <emscripten/bind.h>
#include <emscripten/heap.h>

#include <memory>
#include <string>

#include "kvlens/dtype.h"
#include "kvlens/stage.h"
#include "kvlens/thread_pool.h"
#include "marshal.h"

namespace kvlens::js {
namespace {

using emscripten::class_;
using emscripten::function;
using emscripten::register_type;

using PoolPtr = std::shared_ptr<ThreadPool>;

// The core's tables as types of the declarations: web/src/core/tables.ts compiles only while the
// lists that TypeScript keeps are the same.
void register_tables() {
#define KVLENS_UNION(name) " | '" #name "'"
#define KVLENS_ELEMENT(name) "'" #name "', "
#define KVLENS_DTYPE_ELEMENT(name, values, bytes) KVLENS_ELEMENT(name)
#define KVLENS_DTYPE_FIELD(name, values, bytes) \
  #name ": { blockValues: " #values "; blockBytes: " #bytes " }; "
  register_type<Typed<ErrorCode>>("CoreErrorCode", "never" KVLENS_ERROR_CODES(KVLENS_UNION));
  register_type<Typed<Stage>>("Stages", "[" KVLENS_STAGES(KVLENS_ELEMENT) "]");
  register_type<Typed<struct CounterTag>>("WorkCounterNames",
                                          "[" KVLENS_WORK_COUNTERS(KVLENS_ELEMENT) "]");
  register_type<Typed<DType>>("DTypes", "[" KVLENS_DTYPES(KVLENS_DTYPE_ELEMENT) "]");
  register_type<Typed<DTypeInfo>>("DTypeInfos", "{ " KVLENS_DTYPES(KVLENS_DTYPE_FIELD) "}");
#undef KVLENS_UNION
#undef KVLENS_ELEMENT
#undef KVLENS_DTYPE_ELEMENT
#undef KVLENS_DTYPE_FIELD
}

void register_shared_types() {
  register_type<Failure>(
      "Failure",
      "{ ok: false; code: CoreErrorCode; message: string; context: object; "
      "site: { stage: string; layer: number; position: number } | null; cause: Failure | null }");
  register_type<Outcome<struct AnyTag>>("Outcome<T>", "{ ok: true; value: T } | Failure");
  register_type<Outcome<void>>("Outcome<null>");
  register_type<Outcome<double>>("Outcome<number>");
  register_type<Outcome<std::uint64_t>>("Outcome<bigint>");
  // The package's own type, which config_from and config_value have to agree with.
  register_type<ConfigValue>("import('./types.js').Config");
  register_type<Bytes>("Uint8Array");
  register_type<Ids>("Uint32Array");
  // Counters in the order of WorkCounterNames.
  register_type<WorkValue>("WorkCounters", "Float64Array");
}

EMSCRIPTEN_BINDINGS(kvlens_module) {
  register_tables();
  register_shared_types();
  function("version()", +[] { return std::string(KVLENS_VERSION); });
  function("liveBuffers()", +[] { return static_cast<double>(memory::live_buffers()); });
  function("liveBytes()", +[] { return static_cast<double>(memory::live_bytes()); });
  function("heapBytes()", +[] { return static_cast<double>(emscripten_get_heap_size()); });
  // With these two, the package's tests make any allocation fail.
  function(
      "failAllocationsAfter(successes)",
      +[](double successes) { memory::fail_after(static_cast<std::uint64_t>(successes)); });
  function("clearAllocationFailure()", &memory::clear_failure);
  register_type<Outcome<Contrast>>(
      "Outcome<{ cachedScoreValues: number; replayScoreValues: number; avoidedScoreValues: number; "
      "cachedProjectionRows: number; replayProjectionRows: number; avoidedProjectionRows: number "
      "}>");
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
  register_type<Outcome<ThreadPool>>("Outcome<ThreadPool>");
  class_<ThreadPool>("ThreadPool")
      .smart_ptr<PoolPtr>("ThreadPoolPtr")
      .function("nThreads()", &ThreadPool::n_threads);
  function(
      "createThreadPool(nThreads)", +[](std::size_t n_threads) {
        return outcome<ThreadPool>(ThreadPool::create(n_threads),
                                   [](PoolPtr pool) { return pool; });
      });
}

}  // namespace
}  // namespace kvlens::js
