#include "headgate/store/zookeeper/lock_place.h"

#include <gtest/gtest.h>

namespace headgate::store::zookeeper {
namespace lock_place_test {

using Names = std::vector<std::string>;

const absl::Status kAway = absl::UnavailableError("no connection");
const absl::Status kNoAnswer = absl::UnknownError("no answer");
const absl::Status kMissing = absl::NotFoundError("no node");

constexpr char kOwn[] = "lock-00000000000000a1-0000000008";
constexpr char kFirst[] = "lock-00000000000000b2-0000000006";
constexpr char kSecond[] = "lock-00000000000000c3-0000000007";
constexpr char kLater[] = "lock-00000000000000d4-0000000009";

// The next step of the place, in words.
std::string Next(LockPlace& place) {
  const LockAction action = place.Next();
  switch (action.kind) {
    case LockAction::Kind::kWait:
      return place.held() ? "holds" : "wait";
    case LockAction::Kind::kMakeQueue:
      return "make queue";
    case LockAction::Kind::kCreate:
      return "create " + action.name;
    case LockAction::Kind::kSyncAndList:
      return "sync, list";
    case LockAction::Kind::kList:
      return "list";
    case LockAction::Kind::kRead:
      return "look at " + action.name;
    case LockAction::Kind::kWatch:
      return "watch " + action.name;
    case LockAction::Kind::kDelete:
      return "delete " + action.name;
    case LockAction::Kind::kEnd:
      return "end";
  }
  return "?";
}

class LockPlaceTest : public ::testing::Test {
 protected:
  void Create() {
    ASSERT_EQ(Next(place), "create lock-00000000000000a1-");
    place.OnCreated(std::string(kOwn), 50);
    ASSERT_EQ(Next(place), "list");
  }
  void Hold() {
    Create();
    place.OnListed(Names{kOwn});
    ASSERT_EQ(Next(place), "holds");
  }
  void Wait() {
    Create();
    place.OnListed(Names{kFirst, kOwn});
    ASSERT_EQ(Next(place), std::string("watch ") + kFirst);
    place.OnWatched(absl::OkStatus());
    ASSERT_EQ(Next(place), "wait");
  }

  LockPlace place{0xa1};
};

TEST_F(LockPlaceTest, TheFirstHoldsTheLockUnderTheTransactionThatMadeItsNode) {
  Create();
  place.OnListed(Names{kLater, kOwn});
  EXPECT_EQ(Next(place), "holds");
  EXPECT_EQ(place.fence(), 50u);
  place.Leave();
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  EXPECT_EQ(Next(place), "wait");
  place.OnDeleted(absl::OkStatus());
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, MakesTheQueueIfItIsMissing) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(kMissing, 0);
  EXPECT_EQ(Next(place), "make queue");
  place.OnQueueMade(absl::AlreadyExistsError("another instance was faster"));
  Create();
}

TEST_F(LockPlaceTest, WatchesOnlyTheOneBeforeIt) {
  Create();
  place.OnListed(Names{kLater, kFirst, kOwn, kSecond, "somebody's"});
  EXPECT_EQ(Next(place), std::string("watch ") + kSecond);
  place.OnWatched(absl::OkStatus());
  EXPECT_EQ(Next(place), "wait");
  // The one before has given up, but the first still holds it.
  place.OnPredecessorGone();
  EXPECT_EQ(Next(place), "list");
  place.OnListed(Names{kFirst, kOwn});
  EXPECT_EQ(Next(place), std::string("watch ") + kFirst);
  place.OnWatched(absl::OkStatus());
  place.OnPredecessorGone();
  EXPECT_EQ(Next(place), "list");
  place.OnListed(Names{kOwn, kLater});
  EXPECT_EQ(Next(place), "holds");
}

TEST_F(LockPlaceTest, ThePredecessorMayVanishBeforeItIsWatched) {
  Create();
  place.OnListed(Names{kFirst, kOwn});
  EXPECT_EQ(Next(place), std::string("watch ") + kFirst);
  place.OnWatched(kMissing);
  EXPECT_EQ(Next(place), "list");
}

TEST_F(LockPlaceTest, ThePredecessorMayVanishBeforeTheAnswerToTheWatch) {
  Create();
  place.OnListed(Names{kFirst, kOwn});
  EXPECT_EQ(Next(place), std::string("watch ") + kFirst);
  place.OnPredecessorGone();
  EXPECT_EQ(Next(place), "wait");
  place.OnWatched(absl::OkStatus());
  EXPECT_EQ(Next(place), "list");
}

TEST_F(LockPlaceTest, AQueueWhoseNumbersHaveWrappedKeepsItsOrder) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(std::string("lock-00000000000000a1--2147483648"), 50);
  EXPECT_EQ(Next(place), "list");
  place.OnListed(Names{"lock-00000000000000a1--2147483648", "lock-00000000000000b2-2147483647",
                       "lock-00000000000000c3--2147483647"});
  EXPECT_EQ(Next(place), "watch lock-00000000000000b2-2147483647");
}

TEST_F(LockPlaceTest, ANodeWhoseCreationHadNoAnswerIsFoundByItsId) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(kNoAnswer, 0);
  EXPECT_EQ(Next(place), "wait");
  place.Retry();
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{kOwn, kLater});
  EXPECT_EQ(Next(place), std::string("look at ") + kOwn);
  place.OnLooked(uint64_t{60});
  EXPECT_EQ(Next(place), "holds");
  EXPECT_EQ(place.fence(), 60u);
}

TEST_F(LockPlaceTest, ANodeThatWasNotMadeIsMadeAgain) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(kNoAnswer, 0);
  place.Retry();
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{kFirst});
  Create();
}

TEST_F(LockPlaceTest, TwoNodesOfARepeatedCreationAreBothDeleted) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(kNoAnswer, 0);
  place.Retry();
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{});
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  // The first creation was carried out in between.
  place.OnCreated(std::string("lock-00000000000000a1-0000000010"), 70);
  EXPECT_EQ(Next(place), "list");
  place.OnListed(Names{"lock-00000000000000a1-0000000010", kOwn, kLater});
  EXPECT_EQ(Next(place), std::string("look at ") + kOwn);
  place.OnLooked(uint64_t{60});
  EXPECT_EQ(Next(place), "holds");
  EXPECT_EQ(place.fence(), 60u);
  place.Leave();
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  place.OnDeleted(absl::OkStatus());
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{"lock-00000000000000a1-0000000010", kLater});
  EXPECT_EQ(Next(place), "delete lock-00000000000000a1-0000000010");
  place.OnDeleted(absl::OkStatus());
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{kLater});
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, ANodeThatWasMadeWithoutAnAnswerIsDeletedToo) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.Leave();
  EXPECT_EQ(Next(place), "wait");
  place.OnCreated(kNoAnswer, 0);
  place.Retry();
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(kAway);
  EXPECT_EQ(Next(place), "wait");
  place.Retry();
  EXPECT_EQ(Next(place), "sync, list");
  place.OnListed(Names{kFirst, kOwn});
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  place.OnDeleted(kNoAnswer);
  EXPECT_EQ(Next(place), "wait");
  place.Retry();
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  place.OnDeleted(kMissing);
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, EndsAtOnceIfNothingWasMade) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.Leave();
  place.OnCreated(kMissing, 0);
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, GivesUpWhileItWaits) {
  Wait();
  place.Leave();
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  place.OnDeleted(absl::OkStatus());
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, WaitsAnewIfItsNodeHasVanished) {
  Wait();
  place.OnPredecessorGone();
  EXPECT_EQ(Next(place), "list");
  place.OnListed(Names{kLater});
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
}

TEST_F(LockPlaceTest, BeginsAgainInANewSession) {
  Wait();
  place.OnSessionLost();
  Create();
}

TEST_F(LockPlaceTest, BeginsAgainIfTheSessionEndsBetweenTheCreationAndItsAnswer) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnSessionLost();
  Create();
}

TEST_F(LockPlaceTest, APlaceThatWasLeftEndsIfTheSessionEndsBetweenTheCreationAndItsAnswer) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.Leave();
  place.OnCreated(kNoAnswer, 0);
  EXPECT_EQ(Next(place), "wait");
  place.OnSessionLost();
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, LosesTheLockWithItsSession) {
  Hold();
  place.OnSessionLost();
  EXPECT_TRUE(absl::IsUnavailable(place.failure()));
  EXPECT_FALSE(place.held());
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, NothingIsLeftOfAPlaceThatWasGivenUpWhenTheSessionEnds) {
  Hold();
  place.Leave();
  EXPECT_EQ(Next(place), std::string("delete ") + kOwn);
  place.OnSessionLost();
  EXPECT_EQ(Next(place), "end");
  EXPECT_TRUE(place.failure().ok());
}

TEST_F(LockPlaceTest, FailsIfTheServersHaveNoContainers) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(kMissing, 0);
  EXPECT_EQ(Next(place), "make queue");
  place.OnQueueMade(absl::UnimplementedError("an old server"));
  EXPECT_TRUE(absl::IsUnimplemented(place.failure()));
  EXPECT_EQ(Next(place), "end");
}

TEST_F(LockPlaceTest, FailsIfItMayNot) {
  EXPECT_EQ(Next(place), "create lock-00000000000000a1-");
  place.OnCreated(absl::PermissionDeniedError("no"), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(place.failure()));
  EXPECT_EQ(Next(place), "end");
}

}  // namespace lock_place_test
}  // namespace headgate::store::zookeeper
