// Threads that share one job at a time. A job is cut into pieces, which the threads take by turns.
// Jobs are cut over outputs, never inside a reduction, so a result depends neither on the number of
// threads nor on which thread takes which piece.
//
// The calling thread takes pieces too and never waits for a piece that no thread has begun: a job
// ends even if the other threads get no core. When a begun piece keeps the caller waiting because
// its thread has lost its core, the pool goes on with fewer threads for a while.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>

#include "kvlens/error.h"

namespace kvlens {

// When it pays to use more threads.
struct ThreadLimits {
  // At most this many threads work at a time: more would only take cores from one another.
  std::size_t cores = std::thread::hardware_concurrency();
  // Jobs of fewer multiply-adds run on the caller alone. To hand a piece to another thread and to
  // see it finished takes about a microsecond, in which the integer kernels do this many.
  std::uint64_t smallest_shared_job = 50'000;
};

class ThreadPool {
 public:
  // `n_threads` counts the calling thread; 1 makes a pool that starts none.
  // Errors: invalid_argument (0 or more than 64), out_of_memory (a thread cannot be started).
  [[nodiscard]] static Result<std::shared_ptr<ThreadPool>> create(std::size_t n_threads,
                                                                  const ThreadLimits& limits = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t n_threads() const noexcept;

  // How many threads to cut the next job for, which has `multiply_adds`: 1 if it is small, fewer
  // than usual while other programs keep cores busy.
  [[nodiscard]] std::size_t threads_for(std::uint64_t multiply_adds) noexcept;

  // Calls `function(piece, thread)` once for each piece in [0, n_pieces) and returns when all calls
  // have returned. Pieces are begun in ascending order. `thread` is below `n_threads()` and belongs
  // to one thread during a job; 0 is the caller. One caller at a time; not reentrant.
  template <class F>
  void run(std::size_t n_pieces, F&& function) {
    run_job(
        [](void* context, std::size_t piece, std::size_t thread) {
          (*static_cast<std::remove_reference_t<F>*>(context))(piece, thread);
        },
        static_cast<void*>(&function), n_pieces);
  }

 private:
  struct State;
  using Task = void (*)(void* context, std::size_t piece, std::size_t thread);
  explicit ThreadPool(std::unique_ptr<State> state);
  void run_job(Task task, void* context, std::size_t n_pieces);
  std::unique_ptr<State> state_;
};

}  // namespace kvlens
