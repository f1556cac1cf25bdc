// Threads find work by polling for a while, since the next job of a forward pass follows within
// microseconds, and then sleep until the caller wakes them.
//
// POSIX threads rather than std::thread: a thread that cannot be started is an error value here,
// and std::thread reports it by an exception.
#include "kvlens/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kvlens {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr std::size_t max_threads = 64;

// How long a thread polls before it sleeps: longer than the serial parts between two jobs, since
// waking a sleeper takes longer than most jobs do.
constexpr auto polling_time = microseconds(200);
// The clock costs as much as many polls, and how long a poll takes differs tenfold between machines
// and compilers.
constexpr int polls_per_clock_check = 1'000;

// A wait for begun pieces that takes this much longer than the pieces themselves means that a
// thread has lost its core, which takes a scheduler's time slice to come back.
constexpr auto longest_wait = microseconds(500);
// How much work the pool then does with fewer threads before it tries more, in multiply-adds: tens
// of milliseconds. The pause doubles, up to seconds, as long as trials end sooner than it lasted.
constexpr std::uint64_t shortest_pause = 1'000'000'000;
constexpr std::uint64_t longest_pause = 32 * shortest_pause;

// On x86 with the pause that keeps the other hyperthread fast.
void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

template <class Done>
bool poll(Done done) noexcept {
  for (int i = 0; i < polls_per_clock_check; ++i) {
    if (done()) return true;
    relax();
  }
  return false;
}

// Whether `done` becomes true within `polling_time`.
template <class Done>
bool poll_for_a_while(Done done) noexcept {
  if (poll(done)) return true;
  const Clock::time_point end = Clock::now() + polling_time;
  while (Clock::now() < end) {
    if (poll(done)) return true;
  }
  return false;
}

}  // namespace

struct ThreadPool::State {
  struct Worker {
    State* state;
    std::size_t number;  // 1 and up; the caller is thread 0
    pthread_t thread;
    std::atomic<bool> asleep = false;
    pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  };

  State(std::size_t threads, const ThreadLimits& limits)
      : n_threads(threads),
        workers(threads - 1),
        smallest_shared_job(limits.smallest_shared_job),
        max_helpers(std::min(threads, std::max<std::size_t>(limits.cores, 1)) - 1),
        n_helpers(max_helpers) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  ~State() {
    stopping = true;
    wake(n_started);
    for (std::size_t i = 0; i < n_started; ++i) pthread_join(workers[i].thread, nullptr);
  }

  // Wakes those of the first `n` workers that sleep.
  void wake(std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
      Worker& worker = workers[i];
      if (!worker.asleep.load()) continue;
      pthread_mutex_lock(&mutex);
      worker.asleep = false;
      pthread_cond_signal(&worker.wake);
      pthread_mutex_unlock(&mutex);
    }
  }

  // A worker says that it sleeps before it looks for the last time, and all sides use the one total
  // order of sequentially consistent operations: either it sees the news or `wake` sees it asleep.
  void sleep(Worker& worker) noexcept {
    pthread_mutex_lock(&mutex);
    worker.asleep = true;
    if (stopping || offers(worker)) worker.asleep = false;
    while (worker.asleep) pthread_cond_wait(&worker.wake, &mutex);
    pthread_mutex_unlock(&mutex);
  }

  bool is_helper(const Worker& worker) const noexcept { return worker.number <= n_helpers; }
  bool offers(const Worker& worker) const noexcept { return is_helper(worker) && n_left > 0; }

  static void* work(void* argument) {
    Worker& worker = *static_cast<Worker*>(argument);
    State& state = *worker.state;
    while (!state.stopping) {
      poll_for_a_while([&] { return state.n_left > 0 || !state.is_helper(worker); });
      if (state.offers(worker)) {
        state.take_pieces(worker.number);
      } else {
        state.sleep(worker);
      }
    }
    return nullptr;
  }

  // Takes pieces until none is left, and returns how many it took. A thread reads the job only
  // while it holds a piece: until it has finished that, the caller writes no other job.
  std::size_t take_pieces(std::size_t thread) noexcept {
    std::size_t n_taken = 0;
    while (n_left > 0) {
      const std::int32_t left = n_left.fetch_sub(1);
      if (left <= 0) break;
      const std::size_t n = n_pieces;
      task(context, n - static_cast<std::size_t>(left), thread);
      ++n_taken;
      if (n_finished.fetch_add(1) + 1 == n && caller_sleeps) {
        pthread_mutex_lock(&mutex);
        pthread_cond_signal(&finished);
        pthread_mutex_unlock(&mutex);
      }
    }
    return n_taken;
  }

  // Waits for the pieces that others have begun. `start` is when the job started, of which the
  // caller has done `n_taken` pieces.
  void wait_for_pieces(Clock::time_point start, std::size_t n_taken) noexcept {
    const auto done = [this] { return n_finished == n_pieces; };
    if (poll(done)) return;
    const Clock::time_point begin = Clock::now();
    if (!poll_for_a_while(done)) {
      pthread_mutex_lock(&mutex);
      caller_sleeps = true;
      while (!done()) pthread_cond_wait(&finished, &mutex);
      caller_sleeps = false;
      pthread_mutex_unlock(&mutex);
    }
    const auto piece_time = (begin - start) / static_cast<int>(std::max<std::size_t>(n_taken, 1));
    if (Clock::now() - begin > longest_wait + 2 * piece_time) dismiss_helpers();
  }

  void dismiss_helpers() noexcept {
    pause = work_since_change < pause ? std::min(2 * pause, longest_pause) : shortest_pause;
    work_since_change = 0;
    n_helpers = n_helpers / 2;
  }

  std::size_t threads_for(std::uint64_t multiply_adds) noexcept {
    work_since_change += multiply_adds;
    if (multiply_adds < smallest_shared_job) return 1;
    if (n_helpers < max_helpers && work_since_change >= pause) {
      work_since_change = 0;
      n_helpers = std::min(2 * n_helpers + 1, max_helpers);
    }
    return n_helpers + 1;
  }

  const std::size_t n_threads;
  std::vector<Worker> workers;
  std::size_t n_started = 0;
  std::atomic<bool> stopping = false;

  const std::uint64_t smallest_shared_job;
  // How many of the first workers may take pieces. Written by the caller, as are the next two.
  const std::size_t max_helpers;
  std::atomic<std::size_t> n_helpers;
  std::uint64_t pause = shortest_pause;
  std::uint64_t work_since_change = 0;

  // The job, on a line of its own: all threads poll it.
  alignas(64) std::atomic<std::int32_t> n_left = 0;  // below 0 when several took the last piece
  std::size_t n_pieces = 0;
  Task task = nullptr;
  void* context = nullptr;

  alignas(64) std::atomic<std::size_t> n_finished = 0;
  std::atomic<bool> caller_sleeps = false;
  pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
};

ThreadPool::ThreadPool(std::unique_ptr<State> state) : state_(std::move(state)) {}
ThreadPool::~ThreadPool() = default;

Result<std::shared_ptr<ThreadPool>> ThreadPool::create(std::size_t n_threads,
                                                       const ThreadLimits& limits) {
  if (n_threads == 0 || n_threads > max_threads) {
    return fail(ErrorCode::invalid_argument,
                FieldContext{"n_threads", std::to_string(n_threads), "1..64"},
                "a thread pool has 1 to 64 threads, not " + std::to_string(n_threads));
  }
  auto state = std::make_unique<State>(n_threads, limits);
  for (State::Worker& worker : state->workers) {
    worker.state = state.get();
    worker.number = state->n_started + 1;
    if (pthread_create(&worker.thread, nullptr, State::work, &worker) != 0) {
      return fail(ErrorCode::out_of_memory, BytesContext{0},
                  "cannot start thread " + std::to_string(worker.number + 1) + " of " +
                      std::to_string(n_threads));
    }
    ++state->n_started;
  }
  return std::shared_ptr<ThreadPool>(new ThreadPool(std::move(state)));
}

std::size_t ThreadPool::n_threads() const noexcept { return state_->n_threads; }

std::size_t ThreadPool::threads_for(std::uint64_t multiply_adds) noexcept {
  return state_->threads_for(multiply_adds);
}

void ThreadPool::run_job(Task task, void* context, std::size_t n_pieces) {
  State& state = *state_;
  const Clock::time_point start = Clock::now();
  state.task = task;
  state.context = context;
  state.n_pieces = n_pieces;
  state.n_finished = 0;
  state.n_left = static_cast<std::int32_t>(n_pieces);
  state.wake(std::min(state.n_helpers.load(), n_pieces - 1));
  state.wait_for_pieces(start, state.take_pieces(0));
}

}  // namespace kvlens
