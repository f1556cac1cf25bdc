// Savepoints: whatever was called in between, a rollback brings the session back byte for byte.

#include "kvlens/savepoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "kvlens/memory.h"
#include "kvlens/session.h"
#include "support/expect.h"
#include "support/models.h"
#include "support/schedules.h"
#include "support/snapshot.h"
#include "support/taps.h"

namespace kvlens {
namespace {

using testing::expect_error;
using testing::must;
using testing::random_size;
using testing::random_tokens;
using testing::same_content;
using testing::same_state;
using testing::snapshot;
using testing::Snapshot;
using Ids = std::vector<std::uint32_t>;

template <class T>
class SavepointTest : public ::testing::Test {
 protected:
  static Config config() {
    Config config = testing::tiny_config();
    config.max_seq_len = 200;
    return config;
  }
  std::unique_ptr<Session<T>> make(std::size_t capacity = 200) {
    return testing::make_session<T>(model_, capacity, {.chunk_rows = 16});
  }
  Ids tokens(std::size_t count) { return random_tokens(rng_, count, config().vocab_size); }

  SplitMix64 rng_{231};
  std::shared_ptr<Model> model_ = testing::random_model(config(), rng_);
  std::unique_ptr<Session<T>> session_ = make();
};
using ComputeTypes = ::testing::Types<double, float>;
TYPED_TEST_SUITE(SavepointTest, ComputeTypes);

TYPED_TEST(SavepointTest, ARollbackTakesBackAppendedRows) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  const auto before = snapshot(session);
  const auto savepoint = must(session.savepoint());
  must(session.decode(3));
  must(session.extend(this->tokens(7)));
  must(session.rollback(savepoint));
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, RowsThatWereDroppedAndWrittenOverComeBack) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(150)));
  const auto before = snapshot(session);
  const auto savepoint = must(session.savepoint());
  for (const auto& drop : std::vector<std::function<void()>>{
           [&] { must(session.truncate(149)); }, [&] { must(session.truncate(64)); },
           [&] { must(session.truncate(1)); }, [&] { session.clear(); },
           [&] { session.reset(); }}) {
    drop();
    const auto more = this->tokens(50);
    if (session.kv_len() == 0) {
      must(session.prefill(more));
    } else {
      must(session.extend(more));
    }
    must(session.decode(1));
    must(session.rollback(savepoint));
    ASSERT_TRUE(same_state(snapshot(session), before));
  }
}

TYPED_TEST(SavepointTest, AnEmptySessionCanBeReturnedToWithTheCountersThatItHad) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  session.clear();
  const auto before = snapshot(session);
  EXPECT_NE(before.work, Work{});
  const auto savepoint = must(session.savepoint());
  must(session.prefill(this->tokens(9)));
  must(session.rollback(savepoint));
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, ASavepointWithoutLogitsIsReturnedToWithoutLogits) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  must(session.truncate(4));
  const auto before = snapshot(session);
  const auto savepoint = must(session.savepoint());
  must(session.decode(2));
  must(session.rollback(savepoint));
  EXPECT_TRUE(session.logits().empty());
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, AfterARollbackTheSessionGoesOnAsIfNothingHadHappened) {
  auto& session = *this->session_;
  const Ids prompt = this->tokens(70);
  const Ids more = this->tokens(20);
  must(session.prefill(prompt));
  const auto savepoint = must(session.savepoint());
  must(session.truncate(10));
  must(session.extend(this->tokens(100)));
  must(session.rollback(savepoint));
  must(session.extend(more));
  const auto plain = this->make();
  must(plain->prefill(prompt));
  must(plain->extend(more));
  EXPECT_TRUE(same_content(snapshot(session), snapshot(*plain)));
}

TYPED_TEST(SavepointTest, ARollbackAbandonsAnOpenCall) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(20)));
  const auto before = snapshot(session);
  const auto savepoint = must(session.savepoint());
  must(session.truncate(3));
  must(session.begin(Session<TypeParam>::Phase::extend, this->tokens(40)));
  must(session.advance());
  must(session.rollback(savepoint));
  EXPECT_FALSE(session.call_in_progress());
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, ARollbackEndsTheSavepointsMadeAfterIt) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  const auto first = must(session.savepoint());
  must(session.decode(1));
  const auto second = must(session.savepoint());
  must(session.decode(2));
  must(session.rollback(second));
  EXPECT_EQ(session.kv_len(), 6U);
  must(session.rollback(first));
  const auto before = snapshot(session);
  expect_error<NoContext>(session.rollback(second), ErrorCode::savepoint_ended,
                          "the savepoint has ended: the cache was rolled back to an earlier one");
  EXPECT_TRUE(same_state(snapshot(session), before));
  must(session.rollback(first));
}

TYPED_TEST(SavepointTest, AnotherSessionsSavepointIsRefused) {
  auto& session = *this->session_;
  const auto other = this->make();
  const auto savepoint = must(other->savepoint());
  const auto context =
      expect_error<FieldContext>(session.rollback(savepoint), ErrorCode::invalid_argument);
  EXPECT_EQ(context.field, "savepoint");
}

TYPED_TEST(SavepointTest, WhileACallIsOpenNoSavepointIsMadeAndNoOtherSessionRollsBack) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  const auto neighbour = must(Session<TypeParam>::bind(this->model_, session.cache()));
  const auto savepoint = must(neighbour->savepoint());
  must(session.begin(Session<TypeParam>::Phase::extend, this->tokens(4)));
  const auto before = snapshot(session);
  expect_error<NoContext>(session.savepoint(), ErrorCode::call_in_progress);
  expect_error<NoContext>(neighbour->savepoint(), ErrorCode::call_in_progress);
  expect_error<NoContext>(neighbour->rollback(savepoint), ErrorCode::call_in_progress);
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, RowsThatAnotherSessionOfTheCacheWritesOverComeBackToo) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(90)));
  const auto before = snapshot(session);
  const auto savepoint = must(session.savepoint());
  const auto neighbour = must(Session<TypeParam>::bind(this->model_, session.cache()));
  must(neighbour->truncate(30));
  must(neighbour->extend(this->tokens(100)));
  must(session.rollback(savepoint));
  EXPECT_TRUE(same_state(snapshot(session), before));
}

TYPED_TEST(SavepointTest, RowsInOtherStorageAreNotRolledBackInto) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(5)));
  const auto savepoint = must(session.savepoint());
  auto& layer = session.cache()->layers()[1];
  auto other = must(LayerKvCache<TypeParam>::create(layer.geometry()));
  std::swap(layer, other);
  const auto before = snapshot(session);
  expect_error<MismatchContext>(session.rollback(savepoint), ErrorCode::cache_changed);
  EXPECT_TRUE(same_state(snapshot(session), before));
  std::swap(layer, other);
  must(session.rollback(savepoint));
}

TYPED_TEST(SavepointTest, AppendingRowsTakesNoMemoryAndWritingOverRowsNoMoreThanTheyHave) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(100)));
  const std::uint64_t bytes = memory::live_bytes();
  {
    const auto savepoint = must(session.savepoint());
    const std::uint64_t made = memory::live_bytes() - bytes;
    EXPECT_EQ(made, this->config().vocab_size * sizeof(TypeParam) + 100 * sizeof(std::uint32_t));
    must(session.extend(this->tokens(50)));
    EXPECT_EQ(memory::live_bytes() - bytes, made);
    session.clear();
    must(session.prefill(this->tokens(150)));
    EXPECT_EQ(memory::live_bytes() - bytes, made + session.cache()->bytes() / 2);
    must(session.rollback(savepoint));
    EXPECT_EQ(memory::live_bytes() - bytes, made);
  }
  EXPECT_EQ(memory::live_bytes(), bytes);
}

TYPED_TEST(SavepointTest, WithoutMemoryForASavepointNothingIsMade) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(100)));
  const std::uint64_t buffers = memory::live_buffers();
  const auto before = snapshot(session);
  for (std::uint64_t allowed = 0; allowed < 2; ++allowed) {
    memory::fail_after(allowed);
    const auto savepoint = session.savepoint();
    memory::clear_failure();
    expect_error<BytesContext>(savepoint, ErrorCode::out_of_memory);
    EXPECT_EQ(memory::live_buffers(), buffers);
    EXPECT_TRUE(same_state(snapshot(session), before));
  }
}

TYPED_TEST(SavepointTest, ACallWithoutMemoryForTheRowsItWouldWriteOverChangesNothing) {
  auto& session = *this->session_;
  must(session.prefill(this->tokens(150)));
  const auto at_savepoint = snapshot(session);
  const auto savepoint = must(session.savepoint());
  must(session.truncate(40));
  const auto before = snapshot(session);
  const Ids more = this->tokens(80);  // writes over rows of two blocks
  for (std::uint64_t allowed = 0; allowed < 2; ++allowed) {
    memory::fail_after(allowed);
    const auto extended = session.extend(more);
    memory::clear_failure();
    expect_error<BytesContext>(extended, ErrorCode::out_of_memory);
    EXPECT_TRUE(same_state(snapshot(session), before));
  }
  must(session.extend(more));
  must(session.rollback(savepoint));
  EXPECT_TRUE(same_state(snapshot(session), at_savepoint));
}

// Sessions, calls and savepoints in random order. Every savepoint is remembered with everything
// that could be observed when it was made.
template <class T>
class RandomSchedule {
 public:
  explicit RandomSchedule(std::uint64_t seed) : rng_(seed) {
    const DType dtype = kv_dtype();
    Config config = testing::random_config(rng_, 32);
    if (dtype == DType::q8_0) {
      config.head_dim = 32;
      config.rope.freq_factors.clear();
    }
    config.max_seq_len = 160;
    model_ = testing::random_model(config, rng_);
    session_ = testing::make_session<T>(model_, random_size(rng_, 4, 160),
                                        {.chunk_rows = random_size(rng_, 1, 40)}, dtype);
    neighbour_ = must(Session<T>::bind(model_, session_->cache()));
  }

  void run(std::size_t n_calls) {
    for (std::size_t i = 0; i < n_calls && !::testing::Test::HasFailure(); ++i) call();
    while (!marks_.empty() && !::testing::Test::HasFailure()) roll_back(marks_.size() - 1);
  }
  [[nodiscard]] std::size_t n_rollbacks() const { return n_rollbacks_; }

 private:
  struct Mark {
    Savepoint<T> savepoint;
    Snapshot<T> state;
  };

  DType kv_dtype() {
    if constexpr (std::is_same_v<T, double>) return DType::f64;
    constexpr DType types[] = {DType::f32, DType::bf16, DType::q8_0};
    return types[rng_.next() % 3];
  }

  // A call may fail, for example because the cache is full: it then changes nothing.
  void call() {
    Session<T>& target = rng_.next() % 6 == 0 ? *neighbour_ : *session_;
    const std::size_t room = session_->capacity() - session_->kv_len();
    const std::size_t count = random_size(rng_, 1, std::max<std::size_t>(1, room));
    const Ids ids = random_tokens(rng_, count, model_->config().vocab_size);
    switch (rng_.next() % 12) {
      case 0:
      case 1:
      case 2:
        (void)testing::run_part<T>(target, ids, true, rng_.next() % 2 == 0);
        break;
      case 3:
        (void)target.decode(ids[0]);
        break;
      case 4:
        if (target.kv_len() > 0) must(target.truncate(random_size(rng_, 1, target.kv_len())));
        break;
      case 5:
        if (rng_.next() % 2 == 0) target.clear();
        break;
      case 6:
        if (rng_.next() % 2 == 0) target.reset();
        break;
      case 7: {  // computes some rows and gives up, or meets an error
        const auto phase =
            target.kv_len() == 0 ? Session<T>::Phase::prefill : Session<T>::Phase::extend;
        testing::FaultTap<T> tap(rng_.next() % 40);
        if (target.begin(phase, ids)) (void)target.advance(rng_.next() % 2 == 0 ? &tap : nullptr);
        target.abandon();
        break;
      }
      case 8:
      case 9:
        if (marks_.size() < 4) {
          marks_.push_back({must(session_->savepoint()), snapshot(*session_)});
        }
        break;
      case 10:
        if (!marks_.empty()) roll_back(rng_.next() % marks_.size());
        break;
      default:
        if (!marks_.empty() && rng_.next() % 3 == 0) {
          marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(rng_.next() % marks_.size()));
        }
    }
  }

  // Ends the later ones; keeps the one gone back to now and then.
  void roll_back(std::size_t index) {
    must(session_->rollback(marks_[index].savepoint));
    ++n_rollbacks_;
    EXPECT_TRUE(same_state(snapshot(*session_), marks_[index].state));
    for (std::size_t later = index + 1; later < marks_.size(); ++later) {
      expect_error<NoContext>(session_->rollback(marks_[later].savepoint),
                              ErrorCode::savepoint_ended);
    }
    const bool kept = rng_.next() % 2 == 0;
    marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(index + (kept ? 1 : 0)),
                 marks_.end());
  }

  SplitMix64 rng_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Session<T>> session_;
  std::unique_ptr<Session<T>> neighbour_;  // on the same cache
  std::vector<Mark> marks_;
  std::size_t n_rollbacks_ = 0;
};

TYPED_TEST(SavepointTest, AnyScheduleOfCallsIsTakenBackExactly) {
  std::size_t n_rollbacks = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomSchedule<TypeParam> schedule(seed);
    schedule.run(60);
    n_rollbacks += schedule.n_rollbacks();
  }
  EXPECT_GT(n_rollbacks, 200U);
}

}  // namespace
}  // namespace kvlens
