#include "headgate/store/cas/key_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/cas/key_dialogue.h"
#include "headgate/store/cas/removal.h"

namespace headgate::store::cas {
namespace key_exchange_test {

using base::BootTime;
using base::Duration;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class KeyExchangeTest : public KeyDialogue {};

TEST_F(KeyExchangeTest, ReadsDecidesAndWrites) {
  Ask();
  EXPECT_EQ(Next(), "get");
  EXPECT_EQ(action_.at, now_ + 50ms) << "half of the time";
  EXPECT_EQ(Next(), "wait");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  const auto envelope = ParseEnvelope(bytes_);
  ASSERT_TRUE(envelope.has_value());
  EXPECT_THAT(envelope->writes, ElementsAre(WriteId{7, 1}));
  EXPECT_EQ(envelope->expires_at, action_.expires_at);
  EXPECT_THAT(Answers(), IsEmpty()) << "not before it is written";
  Put(1);
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
  EXPECT_TRUE(exchange_->idle());
}

TEST_F(KeyExchangeTest, LaterRequestsWaitAndTravelTogether) {
  Ask();
  EXPECT_EQ(Next(), "get");
  Ask();
  Ask(2);
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  EXPECT_EQ(Next(), "wait");
  Put(1);
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
  EXPECT_EQ(Next(), "put over 1") << "the value is known: no read";
  Put(2);
  EXPECT_THAT(Answers(), ElementsAre("1 left", "denied"));
  EXPECT_EQ(writer_.counters.rounds.value(), 2u);
  EXPECT_EQ(writer_.counters.combined.value(), 1u);
}

TEST_F(KeyExchangeTest, AnAnswerThatChangesNothingNeedsARead) {
  Begin();
  Ask(3);
  EXPECT_EQ(Next(), "get") << "another instance may have given something back";
  Ask(3);
  Got(bytes_, 1);
  EXPECT_EQ(Next(), "get") << "the second one came after the first read was sent";
  EXPECT_THAT(Answers(), ElementsAre("denied"));
  Got(bytes_, 1);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("denied"));
  EXPECT_EQ(writer_.counters.writes.value(), 1u);
}

TEST_F(KeyExchangeTest, ALostRaceIsRunAgainWithThoseWhoWait) {
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Ask();
  const std::string other = AfterAnother(AfterAnother(""));
  Put(absl::AbortedError("lost"));
  EXPECT_EQ(Next(), "get");
  Got(other, 3);
  EXPECT_EQ(Next(), "put over 3");
  Put(4);
  EXPECT_THAT(Answers(), ElementsAre("0 left", "denied"));
  EXPECT_EQ(writer_.counters.conflicts.value(), 1u);
}

TEST_F(KeyExchangeTest, ThereIsAPauseAfterALostRaceAndItGrows) {
  pauses_pass_ = false;
  writer_.options.pause_min = 1ms;
  writer_.options.pause_max = 4ms;
  Duration longest{0};
  for (int seed = 0; seed < 50; ++seed) {
    writer_.random = base::Random(static_cast<uint64_t>(seed));
    exchange_.emplace(writer_);
    Ask(1, 10s);
    for (int attempt = 0; attempt < 6; ++attempt) {
      EXPECT_EQ(Next(), "get");
      GotNothing();
      EXPECT_EQ(Next(), "put new");
      Put(absl::AbortedError("lost"));
      if (Next() != "wait") {  // the random pause is 0
        GotNothing();
        continue;
      }
      const Duration pause = action_.at - now_;
      EXPECT_LE(pause, std::min<Duration>(4ms, 1ms * (1 << attempt)));
      longest = std::max(longest, pause);
      now_ = action_.at;
    }
  }
  EXPECT_GT(longest, 3ms);
}

TEST_F(KeyExchangeTest, WhoeverLosesTriesAgainUntilItsTimeIsOverAndSaysSo) {
  const base::BootTime end = now_ + 10s;
  Ask(1, 10s);
  for (uint32_t i = 0; i < 1000 && now_ < end; ++i) {
    EXPECT_THAT(Answers(), IsEmpty());
    ASSERT_EQ(Next(), "get") << i;
    Got(AfterAnother(""), i);
    ASSERT_EQ(Next(), fmt::format("put over {}", i));
    Put(absl::AbortedError("lost"));
    now_ += i < 998 ? Duration(1ms) : Duration(10s);
  }
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("RESOURCE_EXHAUSTED"));
  EXPECT_EQ(writer_.counters.exhausted.value(), 1u);
  EXPECT_TRUE(exchange_->idle());
}

TEST_F(KeyExchangeTest, AnAmbiguousWriteThatWasAppliedIsAnswered) {
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  const std::string ours = bytes_;
  Put(absl::UnknownError("the connection broke"));
  EXPECT_THAT(Answers(), IsEmpty());
  EXPECT_EQ(Next(), "get");
  Got(AfterAnother(ours), 3);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("1 left"));
  EXPECT_EQ(writer_.counters.ambiguous_applied.value(), 1u);
  // And the value is known.
  Ask(1, 100ms, Operation::kRefund);
  EXPECT_EQ(Next(), "put over 3");
  Put(4);
  EXPECT_THAT(Answers(), ElementsAre("1 left"));
}

TEST_F(KeyExchangeTest, AnAmbiguousWriteThatLostIsRunAgain) {
  Begin();
  const std::string before = bytes_;
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Put(absl::DeadlineExceededError("slow"));
  EXPECT_EQ(Next(), "get");
  Got(AfterAnother(before), 2);
  EXPECT_EQ(Next(), "put over 2") << "that read will do";
  Put(3);
  EXPECT_THAT(Answers(), ElementsAre("0 left"));
}

TEST_F(KeyExchangeTest, AnAmbiguousWriteThatWasNotAppliedYetIsWrittenAgainAsItWas) {
  Begin();
  const std::string before = bytes_;
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  const std::string ours = bytes_;
  Put(absl::UnknownError("the connection broke"));
  EXPECT_EQ(Next(), "get");
  Ask();  // has to wait: the write in flight cannot change any more
  Got(before, 1);
  EXPECT_EQ(Next(), "put over 1");
  EXPECT_EQ(bytes_, ours);
  // The first attempt was applied after all.
  Put(absl::AbortedError("lost"));
  EXPECT_EQ(Next(), "get");
  Got(ours, 2);
  EXPECT_EQ(Next(), "put over 2");
  EXPECT_THAT(Answers(), ElementsAre("1 left"));
  Put(3);
  EXPECT_THAT(Answers(), ElementsAre("0 left"));
  EXPECT_EQ(writer_.counters.conflicts.value(), 0u);
}

TEST_F(KeyExchangeTest, AnAmbiguousCreationIsFoundByItsGeneration) {
  Ask();
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  const std::string ours = bytes_;
  Put(absl::UnknownError(""));
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new") << "again";
  EXPECT_EQ(bytes_, ours);
  Put(absl::UnknownError(""));
  EXPECT_EQ(Next(), "get");
  // More others have written than the value remembers.
  std::string later = ours;
  for (uint64_t i = 0; i < kWritersMax + 1; ++i) later = AfterAnother(later, 100 + i);
  Got(later, 20);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
}

TEST_F(KeyExchangeTest, AnAmbiguousCreationThatAnotherWonIsRunAgain) {
  Ask();
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  Put(absl::UnknownError(""));
  EXPECT_EQ(Next(), "get");
  Got(AfterAnother(""), 0);
  EXPECT_EQ(Next(), "put over 0");
  Put(1);
  EXPECT_THAT(Answers(), ElementsAre("1 left"));
}

TEST_F(KeyExchangeTest, AWriteWhoseFateTheValueDoesNotTellFails) {
  const auto found_after = [&](std::optional<std::string> later) {
    exchange_.emplace(writer_);
    Begin();
    Ask();
    EXPECT_EQ(Next(), "put over 1");
    Put(absl::UnknownError(""));
    EXPECT_EQ(Next(), "get");
    if (later) {
      Got(*later, 1);
    } else {
      GotNothing();
    }
    EXPECT_EQ(Next(), "wait");
    return Answers();
  };
  EXPECT_THAT(found_after(std::nullopt), ElementsAre("ABORTED")) << "removed";
  EXPECT_THAT(found_after("nonsense"), ElementsAre("ABORTED")) << "unreadable";
  EXPECT_THAT(found_after(AfterAnother("")), ElementsAre("ABORTED"))
      << "removed and made again, with the same version";
  EXPECT_EQ(writer_.counters.ambiguous_forgotten.value(), 3u);
}

TEST_F(KeyExchangeTest, WhoseTimeIsOverWhileAWriteIsUnderWayMayHaveBeenCounted) {
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Ask(1, 200ms);
  now_ += 100ms;
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("DEADLINE_EXCEEDED"));
  // The write succeeds later, and its effect is known.
  Put(2);
  EXPECT_EQ(Next(), "put over 2");
  Put(3);
  EXPECT_THAT(Answers(), ElementsAre("0 left"));
}

TEST_F(KeyExchangeTest, AWriteThatNobodyWaitsForIsNotFollowed) {
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Put(absl::UnknownError(""));
  pauses_pass_ = false;
  now_ += 100ms;
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("DEADLINE_EXCEEDED"));
  EXPECT_TRUE(exchange_->idle());
  Ask();
  EXPECT_EQ(Next(), "get") << "the value is not known";
}

TEST_F(KeyExchangeTest, WhoseTimeIsOverBeforeAWriteWasNotCounted) {
  Ask();
  EXPECT_EQ(Next(), "get");
  now_ += 100ms;
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("UNAVAILABLE"));
  EXPECT_FALSE(exchange_->idle()) << "the read is still in flight";
  Ask();
  GotNothing();
  EXPECT_EQ(Next(), "put new") << "a write needs no read of its own";
  Put(1);
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
}

TEST_F(KeyExchangeTest, WhoseTimeIsOverAfterALostRaceSaysSo) {
  Ask();
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  Put(absl::AbortedError("lost"));
  now_ += 100ms;
  pauses_pass_ = false;
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("RESOURCE_EXHAUSTED"));
}

TEST_F(KeyExchangeTest, AServiceThatIsAwayFailsTheRoundAtOnce) {
  Ask();
  EXPECT_EQ(Next(), "get");
  GotError(absl::UnavailableError("away"));
  EXPECT_THAT(Answers(), ElementsAre("UNAVAILABLE"));
  Ask();
  EXPECT_EQ(Next(), "get");
  GotError(absl::DeadlineExceededError("slow"));
  EXPECT_THAT(Answers(), ElementsAre("UNAVAILABLE")) << "a read changes nothing";
  Ask();
  EXPECT_EQ(Next(), "get");
  GotError(absl::PermissionDeniedError("no"));
  EXPECT_THAT(Answers(), ElementsAre("PERMISSION_DENIED"));
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Put(absl::UnavailableError("away"));
  EXPECT_THAT(Answers(), ElementsAre("UNAVAILABLE"));
  Ask();
  EXPECT_EQ(Next(), "get");
}

TEST_F(KeyExchangeTest, AnOverloadedServiceIsAskedMoreSlowly) {
  Ask();
  EXPECT_EQ(Next(), "get");
  GotError(absl::ResourceExhaustedError("slow down"));
  EXPECT_EQ(Next(), "get");
  GotNothing();
  EXPECT_EQ(Next(), "put new");
  Put(absl::ResourceExhaustedError("slow down"));
  // The value that was read has not changed, so a service that is overloaded is not read again.
  EXPECT_EQ(Next(), "put new");
  Put(0);
  EXPECT_THAT(Answers(), ElementsAre("2 left"));
  EXPECT_EQ(writer_.counters.throttled.value(), 2u);
}

TEST_F(KeyExchangeTest, TheOutcomeOfAWriteIsAskedForWhileTheServiceIsAway) {
  Begin();
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  const std::string ours = bytes_;
  Put(absl::UnknownError(""));
  EXPECT_EQ(Next(), "get");
  GotError(absl::UnavailableError("away"));
  EXPECT_EQ(Next(), "get");
  Got(ours, 2);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("1 left"));
}

TEST_F(KeyExchangeTest, AnOldVersionIsNotUsed) {
  Begin();
  now_ += kVersionAgeMax;
  Ask();
  EXPECT_EQ(Next(), "put over 1");
  Put(2);
  now_ += kVersionAgeMax + Duration(1);
  Ask();
  EXPECT_EQ(Next(), "get") << "the value may have been removed and made again";
}

TEST_F(KeyExchangeTest, AnUnreadableValueGivesNobodyAFreshBucket) {
  int told = 0;
  writer_.options.on_damaged = [&] { ++told; };
  Ask();
  EXPECT_EQ(Next(), "get");
  Got("nonsense", 4);
  EXPECT_EQ(Next(), "wait");
  EXPECT_THAT(Answers(), ElementsAre("DATA_LOSS"));
  EXPECT_EQ(writer_.counters.damaged.value(), 1u);
  EXPECT_EQ(told, 1);
  // It is read again for the next request: somebody may have mended it.
  Ask();
  EXPECT_EQ(Next(), "get");
}

TEST_F(KeyExchangeTest, AnUnreadableValueIsReplacedByAReset) {
  Ask(0, 100ms, Operation::kReset);
  Ask();
  EXPECT_EQ(Next(), "get");
  Got("nonsense", 4);
  EXPECT_EQ(Next(), "put over 4");
  Put(5);
  EXPECT_THAT(Answers(), ElementsAre("DATA_LOSS", "3 left"));
  EXPECT_TRUE(ParseEnvelope(bytes_).has_value());
}

TEST_F(KeyExchangeTest, AResetLeavesAnEmptyValueInPlace) {
  Begin();
  Ask(0, 100ms, Operation::kReset);
  EXPECT_EQ(Next(), "put over 1");
  EXPECT_EQ(ParseEnvelope(bytes_)->bucket, "");
  Put(2);
  EXPECT_THAT(Answers(), ElementsAre("3 left"));
}

}  // namespace key_exchange_test
}  // namespace headgate::store::cas
