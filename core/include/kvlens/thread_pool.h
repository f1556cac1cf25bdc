// Threads that share one piece of work at a time. Work is split over outputs, never inside a
// reduction, so a result does not depend on how many threads there are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "kvlens/error.h"

namespace kvlens {

class ThreadPool {
 public:
  // Part `part` of `n_parts`, called once for each part, part 0 on the calling thread.
  using Task = void (*)(void* context, std::size_t part, std::size_t n_parts);

  // `n_threads` counts the calling thread; 1 makes a pool that starts none.
  // Errors: invalid_argument (0 or more than 64), out_of_memory (a thread cannot be started).
  [[nodiscard]] static Result<std::shared_ptr<ThreadPool>> create(std::size_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] std::size_t n_threads() const noexcept;

  // Returns when every part is done. Not reentrant; one caller at a time.
  template <class F>
  void run(F&& part_function) {
    run_task(
        [](void* context, std::size_t part, std::size_t n_parts) {
          (*static_cast<std::remove_reference_t<F>*>(context))(part, n_parts);
        },
        static_cast<void*>(&part_function));
  }

 private:
  struct State;
  explicit ThreadPool(std::unique_ptr<State> state);
  void run_task(Task task, void* context);
  std::unique_ptr<State> state_;
};

}  // namespace kvlens
