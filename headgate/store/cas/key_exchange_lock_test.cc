// Exchanges whose requests ask for the lock of the key.
#include "headgate/store/cas/key_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/cas/key_dialogue.h"

namespace headgate::store::cas {
namespace key_exchange_lock_test {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

class KeyExchangeLockTest : public KeyDialogue {};

TEST_F(KeyExchangeLockTest, LockedRequestsAreDecidedUnderTheLock) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  AskLocked();
  EXPECT_EQ(Next(), "wait");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  EXPECT_EQ(ParseEnvelope(bytes_)->fence, 17u);
  Put(0);
  EXPECT_THAT(Answers(), ElementsAre("2 left", "1 left"));
  EXPECT_EQ(Next(), "unlock");
  EXPECT_EQ(Next(), "wait");
  EXPECT_TRUE(exchange_->idle());
}

TEST_F(KeyExchangeLockTest, RequestsThatComeUnderTheLockNeedNoOther) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  AskLocked();
  Put(0);
  EXPECT_EQ(Next(), "put over 0");
  Put(1);
  EXPECT_THAT(Answers(), ElementsAre("2 left", "1 left"));
  EXPECT_EQ(Next(), "unlock");
}

TEST_F(KeyExchangeLockTest, LetsOthersHaveTheLockAfterAWhile) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  AskLocked();
  now_ = now_ + writer_.options.lock_hold_max;
  Put(0);
  EXPECT_EQ(Next(), "unlock");
  EXPECT_EQ(Next(), "lock");
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
  exchange_->OnLock(now_, 19);
  // Another instance may have written in between.
  EXPECT_EQ(Next(), "get");
}

TEST_F(KeyExchangeLockTest, RequestsWithoutTheLockDoNotWaitForIt) {
  AskLocked();
  Ask();
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  EXPECT_EQ(ParseEnvelope(bytes_)->fence, 0u);
  Put(0);
  EXPECT_EQ(Next(), "lock");
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
  EXPECT_EQ(Next(), "wait");
}

TEST_F(KeyExchangeLockTest, AWriterWithoutTheLockKeepsItsFence) {
  std::string fenced;
  AppendEnvelope({.generation = 5, .fence = 17}, fenced);
  Ask();
  EXPECT_EQ(Next(), "get");
  Got(fenced, 3);
  EXPECT_EQ(Next(), "put over 3");
  EXPECT_EQ(ParseEnvelope(bytes_)->fence, 17u);
}

TEST_F(KeyExchangeLockTest, DoesNotWriteUnderAnEarlierLockThanTheLastWriter) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  std::string fenced;
  AppendEnvelope({.generation = 5, .fence = 18}, fenced);
  Got(fenced, 3);
  EXPECT_EQ(Next(), "unlock");
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 19);
  EXPECT_EQ(Next(), "get");
  Got(fenced, 3);
  EXPECT_EQ(Next(), "put over 3");
  EXPECT_EQ(ParseEnvelope(bytes_)->fence, 19u);
  EXPECT_EQ(writer_.counters.locks_lost.value(), 1u);
}

TEST_F(KeyExchangeLockTest, TakesTheLockAgainIfItWasLost) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  exchange_->OnLock(now_, absl::UnavailableError("the session has ended"));
  EXPECT_EQ(Next(), "wait");
  GotNothing();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 19);
  EXPECT_EQ(Next(), "get");
}

TEST_F(KeyExchangeLockTest, AWriteThatIsUnderWayWhenTheLockIsLostCounts) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  exchange_->OnLock(now_, absl::UnavailableError("the session has ended"));
  Put(absl::UnknownError("no answer"));
  EXPECT_EQ(Next(), "get");
  Got(bytes_, 0);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
}

TEST_F(KeyExchangeLockTest, StopsWaitingForTheLockWhenTheTimeIsOver) {
  AskLocked(5s);
  EXPECT_EQ(Next(), "lock");
  EXPECT_EQ(Next(), "wait");
  EXPECT_EQ(action_.at, now_ + 5s);
  now_ = now_ + 5s;
  EXPECT_EQ(Next(), "unlock");
  EXPECT_THAT(Answers(), ElementsAre("CANCELLED"));
  EXPECT_EQ(writer_.counters.locks_timed_out.value(), 1u);
  EXPECT_TRUE(exchange_->idle());
}

TEST_F(KeyExchangeLockTest, FailsIfTheLockCannotBeHad) {
  AskLocked();
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, absl::UnavailableError("no connection"));
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("UNAVAILABLE"));
}

TEST_F(KeyExchangeLockTest, AServiceThatDoesNotAnswerIsNotGivenTheTimeOfTheLock) {
  AskLocked(5s);
  EXPECT_EQ(Next(), "lock");
  exchange_->OnLock(now_, 17);
  EXPECT_EQ(Next(), "get");
  EXPECT_EQ(action_.at, now_ + writer_.options.timeout / 2);
}

}  // namespace key_exchange_lock_test
}  // namespace headgate::store::cas
