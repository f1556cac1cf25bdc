#include "kvlens/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kvlens {
namespace {

#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)

TEST(ThreadPoolTest, WithoutThreadsAPoolOfOneWorksAndALargerOneIsAnError) {
  const auto alone = ThreadPool::create(1);
  ASSERT_TRUE(alone);
  int calls = 0;
  (*alone)->run([&](std::size_t part, std::size_t n_parts) {
    EXPECT_EQ(part, 0U);
    EXPECT_EQ(n_parts, 1U);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  const auto pool = ThreadPool::create(2);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, ErrorCode::out_of_memory);
}

#else

TEST(ThreadPoolTest, EveryPartRunsOnceAndPartZeroOnTheCaller) {
  for (const std::size_t n_threads : {1u, 2u, 3u, 8u}) {
    const auto pool = ThreadPool::create(n_threads);
    ASSERT_TRUE(pool);
    EXPECT_EQ((*pool)->n_threads(), n_threads);
    const pthread_t caller = pthread_self();
    for (int round = 0; round < 500; ++round) {
      std::vector<std::atomic<int>> calls(n_threads);
      std::atomic<bool> caller_ran_zero{false};
      (*pool)->run([&](std::size_t part, std::size_t n_parts) {
        EXPECT_EQ(n_parts, n_threads);
        ++calls[part];
        if (part == 0) caller_ran_zero = pthread_equal(pthread_self(), caller) != 0;
      });
      for (const auto& count : calls) EXPECT_EQ(count, 1);
      EXPECT_TRUE(caller_ran_zero);
    }
  }
}

TEST(ThreadPoolTest, ASleepingPoolWakesAndASlowPartIsWaitedFor) {
  const auto pool = ThreadPool::create(3);
  ASSERT_TRUE(pool);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than any spinning
    std::atomic<int> done{0};
    (*pool)->run([&](std::size_t part, std::size_t) {
      if (part == 2) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++done;
    });
    EXPECT_EQ(done, 3);
  }
}

TEST(ThreadPoolTest, APoolCanEndUnusedAndRightAfterItsStart) {
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(ThreadPool::create(4));
}

#endif

TEST(ThreadPoolTest, ThreadCountOutOfRangeIsAnError) {
  for (const std::size_t n_threads : {std::size_t{0}, std::size_t{65}}) {
    const auto pool = ThreadPool::create(n_threads);
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace kvlens
