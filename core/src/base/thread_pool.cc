// Workers wait for a change of `generation`: they spin for a while, since the next piece of work of
// a forward pass follows within microseconds, and then sleep on a condition variable.
//
// POSIX threads rather than std::thread: a thread that cannot be started is an error value here,
// and std::thread reports it by an exception.
#include "kvlens/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kvlens {
namespace {

constexpr std::size_t max_threads = 64;

// One look at memory: some nanoseconds. On x86 with the pause that keeps the other hyperthread
// fast.
void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}
// Longer than the serial parts between two pieces of work: to wake a sleeper takes longer than most
// pieces do. Looks differ tenfold between machines and compilers, so the time is what counts; the
// clock costs more than many looks.
constexpr auto spin_time = std::chrono::microseconds(200);
constexpr int looks_a_time = 1'000;

// Whether `done` becomes true while it is looked at again and again.
template <class Done>
bool spin_until(Done done) noexcept {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end{};
  while (true) {
    for (int i = 0; i < looks_a_time; ++i) {
      if (done()) return true;
      relax();
    }
    const Clock::time_point now = Clock::now();
    if (end == Clock::time_point{}) end = now + spin_time;
    if (now >= end) return false;
  }
}

}  // namespace

struct ThreadPool::State {
  struct Worker {
    State* state;
    std::size_t part;
    pthread_t thread;
  };

  explicit State(std::size_t threads) : n_threads(threads) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    stopping = true;
    announce();
    for (std::size_t i = 0; i < n_started; ++i) pthread_join(workers[i].thread, nullptr);
    pthread_cond_destroy(&changed);
    pthread_mutex_destroy(&mutex);
  }

  // Starts the next generation. A worker counts itself as a sleeper before it looks at `generation`
  // for the last time, and both sides use the one total order of sequentially consistent
  // operations: either it sees the new generation or this sees the sleeper.
  void announce() noexcept {
    generation.fetch_add(1);
    if (sleepers.load() != 0) {
      pthread_mutex_lock(&mutex);
      pthread_cond_broadcast(&changed);
      pthread_mutex_unlock(&mutex);
    }
  }

  // The generation after `seen`.
  std::uint32_t wait_for_work(std::uint32_t seen) noexcept {
    if (spin_until([&] { return generation.load(std::memory_order_acquire) != seen; })) {
      return generation.load();
    }
    pthread_mutex_lock(&mutex);
    sleepers.fetch_add(1);
    while (generation.load() == seen) pthread_cond_wait(&changed, &mutex);
    sleepers.fetch_sub(1);
    pthread_mutex_unlock(&mutex);
    return generation.load();
  }

  void finish_part() noexcept {
    if (unfinished.fetch_sub(1) == 1 && caller_sleeps.load()) {
      pthread_mutex_lock(&mutex);
      pthread_cond_broadcast(&changed);
      pthread_mutex_unlock(&mutex);
    }
  }

  void wait_for_parts() noexcept {
    if (spin_until([&] { return unfinished.load(std::memory_order_acquire) == 0; })) return;
    pthread_mutex_lock(&mutex);
    caller_sleeps = true;
    while (unfinished.load() != 0) pthread_cond_wait(&changed, &mutex);
    caller_sleeps = false;
    pthread_mutex_unlock(&mutex);
  }

  static void* work(void* argument) {
    const Worker& worker = *static_cast<const Worker*>(argument);
    State& state = *worker.state;
    std::uint32_t seen = 0;
    while (true) {
      seen = state.wait_for_work(seen);
      if (state.stopping) return nullptr;
      state.task(state.context, worker.part, state.n_threads);
      state.finish_part();
    }
  }

  const std::size_t n_threads;
  std::vector<Worker> workers;  // never resized once the first has started
  std::size_t n_started = 0;

  // Written before `generation` changes, read after.
  Task task = nullptr;
  void* context = nullptr;
  bool stopping = false;

  // On lines of their own: all threads poll the first, the caller polls the second.
  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::size_t> unfinished{0};
  std::atomic<std::uint32_t> sleepers{0};
  std::atomic<bool> caller_sleeps{false};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
};

ThreadPool::ThreadPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
ThreadPool::~ThreadPool() = default;

Result<std::shared_ptr<ThreadPool>> ThreadPool::create(std::size_t n_threads) {
  if (n_threads == 0 || n_threads > max_threads) {
    return fail(ErrorCode::invalid_argument,
                FieldContext{"n_threads", std::to_string(n_threads), "1..64"},
                "a thread pool has 1 to 64 threads, not " + std::to_string(n_threads));
  }
  auto state = std::make_unique<State>(n_threads);
  state->workers.resize(n_threads - 1);
  for (std::size_t i = 0; i + 1 < n_threads; ++i) {
    State::Worker& worker = state->workers[i];
    worker.state = state.get();
    worker.part = i + 1;
    if (pthread_create(&worker.thread, nullptr, State::work, &worker) != 0) {
      return fail(
          ErrorCode::out_of_memory, BytesContext{0},
          "cannot start thread " + std::to_string(i + 2) + " of " + std::to_string(n_threads));
    }
    state->n_started = i + 1;
  }
  return std::shared_ptr<ThreadPool>(new ThreadPool(std::move(state)));
}

std::size_t ThreadPool::n_threads() const noexcept { return state_->n_threads; }

void ThreadPool::run_task(Task task, void* context) {
  State& state = *state_;
  if (state.n_threads > 1) {
    state.task = task;
    state.context = context;
    state.unfinished.store(state.n_threads - 1);
    state.announce();
  }
  task(context, 0, state.n_threads);
  if (state.n_threads > 1) state.wait_for_parts();
}

}  // namespace kvlens
