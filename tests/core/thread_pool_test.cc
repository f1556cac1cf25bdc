#include "kvlens/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "kvlens/random.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"

namespace kvlens {
namespace {

using testing::make_pool;

#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)

TEST(ThreadPoolTest, WithoutThreadsAPoolOfOneWorksAndALargerOneIsAnError) {
  const auto alone = ThreadPool::create(1);
  ASSERT_TRUE(alone);
  int calls = 0;
  (*alone)->run(3, [&](std::size_t piece, std::size_t thread) {
    EXPECT_EQ(piece, static_cast<std::size_t>(calls));
    EXPECT_EQ(thread, 0U);
    ++calls;
  });
  EXPECT_EQ(calls, 3);
  const auto pool = ThreadPool::create(2);
  ASSERT_FALSE(pool);
  EXPECT_EQ(pool.error().code, ErrorCode::out_of_memory);
}

#else

TEST(ThreadPoolTest, EveryPieceRunsOnceAndEachThreadHasItsNumber) {
  SplitMix64 rng(41);
  for (const std::size_t n_threads : {1U, 2U, 3U, 8U}) {
    const auto pool = make_pool(n_threads);
    EXPECT_EQ(pool->n_threads(), n_threads);
    const pthread_t caller = pthread_self();
    for (int round = 0; round < 500; ++round) {
      const std::size_t n_pieces = testing::random_size(rng, 0, 50);
      // Not atomic: a thread checker sees whether the end of a job is the end of all its pieces.
      std::vector<int> calls(n_pieces);
      std::vector<std::atomic<int>> busy(n_threads);
      pool->run(n_pieces, [&](std::size_t piece, std::size_t thread) {
        ASSERT_LT(thread, n_threads);
        EXPECT_EQ(busy[thread].fetch_add(1), 0);
        EXPECT_EQ(thread == 0, pthread_equal(pthread_self(), caller) != 0);
        ++calls[piece];
        busy[thread].fetch_sub(1);
      });
      EXPECT_EQ(calls, std::vector<int>(n_pieces, 1));
    }
  }
}

TEST(ThreadPoolTest, ASleepingPoolWakesAndAllItsThreadsTakeAPiece) {
  for (const std::size_t n_threads : {2U, 3U, 8U}) {
    const auto pool = make_pool(n_threads);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than any polling
    std::atomic<std::size_t> n_begun = 0;
    pool->run(n_threads, [&](std::size_t, std::size_t) {
      ++n_begun;
      while (n_begun < n_threads) std::this_thread::yield();
    });
    EXPECT_EQ(n_begun, n_threads);
  }
}

TEST(ThreadPoolTest, TheCallerTakesEveryPieceThatNoOtherThreadHasBegun) {
  constexpr std::size_t n_pieces = 10;
  for (const std::size_t n_threads : {2U, 3U}) {
    const auto pool = make_pool(n_threads);
    for (int round = 0; round < 200; ++round) {
      // Each other thread keeps its first piece until all the rest is done.
      std::atomic<std::size_t> n_kept = 0;
      std::atomic<std::size_t> n_done = 0;
      pool->run(n_pieces, [&](std::size_t, std::size_t thread) {
        if (thread == 0) {
          ++n_done;
          return;
        }
        ++n_kept;
        while (n_done + n_kept < n_pieces) std::this_thread::yield();
      });
      EXPECT_EQ(n_done + n_kept, n_pieces);
      EXPECT_LT(n_kept, n_threads);
    }
  }
}

TEST(ThreadPoolTest, ManyJobsOfEverySizeLeaveNoPieceBehind) {
  SplitMix64 rng(43);
  for (const std::size_t n_threads : {2U, 3U, 8U}) {
    const auto pool = make_pool(n_threads);
    std::vector<std::uint64_t> values(64);
    std::uint64_t expected = 0;
    std::uint64_t sum = 0;
    for (int job = 0; job < 5'000; ++job) {
      const std::size_t n_pieces = testing::random_size(rng, 1, values.size());
      const std::uint64_t seed = rng.next();
      pool->run(n_pieces, [&](std::size_t piece, std::size_t) { values[piece] = seed ^ piece; });
      for (std::size_t piece = 0; piece < n_pieces; ++piece) {
        sum += values[piece];
        expected += seed ^ piece;
      }
      // Long enough, sometimes, for threads to fall asleep.
      if (job % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST(ThreadPoolTest, AThreadThatKeepsTheCallerWaitingIsGivenNoPieceForAWhile) {
  const auto pool = make_pool(2);
  ASSERT_EQ(pool->threads_for(1), 2U);
  // The other thread takes one of two pieces and is slow, as if it had lost its core. (The caller
  // may be slow for that very reason, and then it counts as slow work: hence several rounds.)
  while (pool->threads_for(1) == 2) {
    std::atomic<std::size_t> n_begun = 0;
    pool->run(2, [&](std::size_t, std::size_t thread) {
      ++n_begun;
      while (n_begun < 2) std::this_thread::yield();
      if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  }
  EXPECT_EQ(pool->threads_for(1), 1U);
  pool->run(5, [](std::size_t, std::size_t thread) { EXPECT_EQ(thread, 0U); });
  EXPECT_EQ(pool->threads_for(1'000'000'000'000), 2U) << "work ends the pause, not time";
}

TEST(ThreadPoolTest, NoMoreThreadsWorkThanThereAreCores) {
  const auto pool = ThreadPool::create(8, {.cores = 2, .smallest_shared_job = 0});
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->n_threads(), 8U);
  EXPECT_EQ((*pool)->threads_for(0), 2U);
  for (int round = 0; round < 500; ++round) {
    (*pool)->run(20, [](std::size_t, std::size_t thread) { EXPECT_LT(thread, 2U); });
  }
  const auto single = ThreadPool::create(8, {.cores = 0, .smallest_shared_job = 0});
  ASSERT_TRUE(single);
  EXPECT_EQ((*single)->threads_for(0), 1U) << "a machine that does not tell has one core";
}

TEST(ThreadPoolTest, SmallJobsAreNotShared) {
  const auto pool = ThreadPool::create(2, {.cores = 2, .smallest_shared_job = 1000});
  ASSERT_TRUE(pool);
  EXPECT_EQ((*pool)->threads_for(999), 1U);
  EXPECT_EQ((*pool)->threads_for(1000), 2U);
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
