#include "headgate/store/redis/shard_histories.h"

#include <gtest/gtest.h>

#include <functional>

namespace headgate::store::redis {
namespace shard_histories_test {

using base::BootTime;
using base::Duration;
using enum HistoryChange;
using namespace std::chrono_literals;

constexpr Duration kTtl = 2s;

struct Histories : ::testing::Test {
  HistoryChange Sees(ServerIdentity server, uint32_t shard = 0) {
    return histories.OnSeen(shard, server, now);
  }
  // Returns 0 if the shard is not learning.
  Duration Term(uint32_t shard = 0) const {
    const auto until = histories.LearningUntil(shard, now);
    return until ? *until - now : Duration(0);
  }

  ShardHistories histories{kTtl};
  BootTime now = BootTime{0} + 1h;
  const ServerIdentity primary{.run = 1, .replication = 0xA, .age = 1h};
};

TEST_F(Histories, TheFirstServerOfAShardTeachesNothing) {
  EXPECT_EQ(Sees(primary), kNone);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .age = 0s}, 1), kNone)
      << "it is new, and says of no history before";
  EXPECT_EQ(Sees({.run = 3, .replication = 0xC, .previous = 0xD, .age = 1h}, 2), kNone)
      << "promoted once, by itself";
  for (const uint32_t shard : {0u, 1u, 2u}) EXPECT_EQ(Term(shard), 0s);
}

TEST_F(Histories, TheSameProcessUnderAnotherIdGoesOn) {
  Sees(primary);
  EXPECT_EQ(Sees({.run = 1, .replication = 0xB, .age = 1h}), kNone) << "its first replica came";
  EXPECT_EQ(Sees({.run = 1, .replication = 0xC, .age = 1h}), kNone)
      << "its last replica is long gone";
  EXPECT_EQ(Term(), 0s);
}

TEST_F(Histories, ARestartIsLearnedFromTheStartOfTheProcessWheneverItIsSeen) {
  for (const uint64_t previous : {uint64_t{0}, uint64_t{0xA}}) {
    for (const Duration age : {0ms, 400ms, 1999ms}) {
      ShardHistories fresh(kTtl);
      fresh.OnSeen(0, primary, now);
      const ServerIdentity restarted{
          .run = 2, .replication = 0xB, .previous = previous, .age = age};
      EXPECT_EQ(fresh.OnSeen(0, restarted, now + age), kRestarted) << previous;
      EXPECT_EQ(fresh.LearningUntil(0, now + age), now + kTtl);
      EXPECT_EQ(fresh.LearningUntil(0, now + kTtl - Duration(1)), now + kTtl);
      EXPECT_EQ(fresh.LearningUntil(0, now + kTtl), std::nullopt);
    }
  }
}

TEST_F(Histories, ARestartThatIsOlderThanALeaseCanBeIsOver) {
  Sees(primary);
  now += 1min;
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 50s}), kNone);
  EXPECT_EQ(Term(), 0s);
}

TEST_F(Histories, AServerThatRestartedFromAFileTeachesAlsoWhoSeesItFirst) {
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 500ms}), kRestarted);
  EXPECT_EQ(Term(), 1500ms);
}

TEST_F(Histories, APromotedReplicaIsLearnedFromWhenItIsSeen) {
  Sees(primary);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 1h}, 1), kPromoted);
  EXPECT_EQ(Term(1), kTtl);
  EXPECT_EQ(Term(0), 0s);
}

TEST_F(Histories, APromotedReplicaThatIsYoungIsLearnedForAWholeTerm) {
  Sees(primary);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 1900ms}, 1), kPromoted);
  EXPECT_EQ(Term(1), kTtl);
}

TEST_F(Histories, TheHistoryThatAReplicaFollowsIsKnown) {
  EXPECT_EQ(Sees({.run = 2, .replication = 0xA, .age = 1h, .primary = false}, 1), kNone);
  EXPECT_EQ(Term(1), 0s);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 1h}, 1), kPromoted);
}

TEST_F(Histories, AProcessThatWasDemotedAndPromotedAgainMayLackTheEndOfAnothers) {
  Sees(primary);
  Sees({.run = 1, .replication = 0xB, .age = 1h, .primary = false});
  EXPECT_EQ(Sees({.run = 1, .replication = 0xC, .previous = 0xB, .age = 1h}), kPromoted);
  EXPECT_EQ(Term(), kTtl);
}

TEST_F(Histories, AnotherServerAtTheSameAddressIsLearned) {
  Sees(primary);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .age = 1h}), kReplaced);
  EXPECT_EQ(Term(), kTtl);
}

// Both servers have one name, as with Sentinel: the new primary was a replica of the old one.
TEST_F(Histories, APromotionInTheSameShardIsLearned) {
  Sees(primary);
  EXPECT_EQ(Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 1h}), kPromoted);
  EXPECT_EQ(Term(), kTtl);
}

// It started when the old one was last heard of, or a moment later: at another address this is not
// a restart.
TEST_F(Histories, APromotionAtAnotherAddressIsLearnedHoweverYoungTheReplicaIs) {
  for (const Duration age : {1s, 3s, 4s, 5s}) {
    ShardHistories fresh(kTtl);
    fresh.OnSeen(0, primary, now, /*place*/ 1);
    const ServerIdentity promoted{.run = 2, .replication = 0xB, .previous = 0xA, .age = age};
    EXPECT_EQ(fresh.OnSeen(0, promoted, now + 4s, /*place*/ 2), kPromoted) << age.count();
    EXPECT_EQ(fresh.LearningUntil(0, now + 4s), now + 4s + kTtl);
  }
}

TEST_F(Histories, ChangesWithinATermDoNotExtendIt) {
  Sees(primary);
  Sees({.run = 2, .replication = 0xB, .age = 0s});
  now += 1500ms;
  EXPECT_EQ(Sees({.run = 3, .replication = 0xC, .age = 0s}), kRestarted);
  EXPECT_EQ(Term(), 500ms);
  now += 500ms;
  EXPECT_EQ(Term(), 0s);
  EXPECT_EQ(Sees({.run = 4, .replication = 0xD, .age = 0s}), kRestarted);
  EXPECT_EQ(Term(), kTtl) << "a break behind the term is another";
}

TEST_F(Histories, ATermGoesOverToWhoIsPromotedWithinIt) {
  Sees(primary);
  Sees({.run = 2, .replication = 0xB, .previous = 0xA, .age = 1h}, 1);
  now += 1500ms;
  EXPECT_EQ(Sees({.run = 3, .replication = 0xC, .previous = 0xB, .age = 1h}, 2), kPromoted);
  EXPECT_EQ(Term(2), 500ms);
}

TEST_F(Histories, TwoServersThatAnswerInTurnTeachOneTermInAll) {
  const ServerIdentity other{.run = 2, .replication = 0xB, .previous = 0xA, .age = 1h};
  Sees(primary);
  Sees(other);
  for (int i = 0; i < 100; ++i) {
    now += 100ms;
    EXPECT_EQ(Sees(i % 2 == 0 ? primary : other), kNone);
  }
  EXPECT_EQ(Term(), 0s);
}

TEST_F(Histories, AServerThatDoesNotSayItsProcessTeachesByItsHistory) {
  Sees({.replication = 0xA});
  EXPECT_EQ(Sees({.replication = 0xB}), kNone);
  EXPECT_EQ(Sees({.replication = 0xC, .previous = 0xB}), kPromoted);
}

TEST_F(Histories, AShardThatIsForgottenBeginsAnew) {
  Sees(primary);
  Sees({.run = 2, .replication = 0xB, .age = 0s});
  histories.Forget(0);
  EXPECT_EQ(Term(), 0s);
  EXPECT_EQ(Sees({.run = 3, .replication = 0xC, .age = 1h}), kNone);
}

// Every course of six events that can happen to a pair of servers of one shard, which this node
// sees at each step or not: if it sees every step, learning lasts no longer than one term at a
// stretch, and a continued history never causes learning.
TEST_F(Histories, InEveryCourseOfSixEventsNoTermIsLongerThanOne) {
  enum Event { kReplicaAttached, kRestart, kFailOver, kLookAtOther, kWait };
  constexpr int kLength = 6;
  int courses = 0;
  std::vector<Event> course;
  const std::function<void()> run = [&] {
    ++courses;
    ShardHistories machine(kTtl);
    BootTime at = BootTime{0} + 1h;
    uint64_t next = 1;
    ServerIdentity here{.run = next++, .replication = next++, .age = 1h};
    ServerIdentity there{.run = next++, .replication = next++, .age = 1h};
    machine.OnSeen(0, here, at);
    std::optional<BootTime> learning_since;
    bool broke = false;
    for (const Event event : course) {
      at += event == kWait ? 3s : 300ms;
      here.age += 300ms;
      switch (event) {
        case kReplicaAttached:
          here.replication = next++;
          here.previous = 0;
          break;
        case kRestart:
          here = {.run = next++, .replication = next++, .previous = here.replication, .age = 0s};
          broke = true;
          break;
        case kFailOver:
          std::swap(here, there);
          here.age = 1h;
          here.previous = there.replication;
          here.replication = next++;
          broke = true;
          break;
        case kLookAtOther:
          std::swap(here, there);
          broke = true;
          break;
        case kWait:
          break;
      }
      machine.OnSeen(0, here, at);
      const auto until = machine.LearningUntil(0, at);
      EXPECT_FALSE(until && !broke);
      if (!until) learning_since.reset();
      if (until && !learning_since) learning_since = at;
      if (until) {
        EXPECT_LE(*until - *learning_since, kTtl);
      }
    }
  };
  const std::function<void()> extend = [&] {
    if (course.size() == kLength) return run();
    for (const Event event : {kReplicaAttached, kRestart, kFailOver, kLookAtOther, kWait}) {
      course.push_back(event);
      extend();
      course.pop_back();
    }
  };
  extend();
  EXPECT_EQ(courses, 15625);
}

// As Redis 7.0 writes it.
TEST(ServerIdentities, AreReadFromInfo) {
  constexpr std::string_view kServer =
      "# Server\r\nredis_version:7.0.15\r\nrun_id:7c2be71122334455aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
      "server_time_usec:1795362826638591\r\nuptime_in_seconds:5\r\n";
  constexpr std::string_view kReplication =
      "# Replication\r\nrole:master\r\nmaster_replid:75367c0000000001aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
      "master_replid2:0000000000000000000000000000000000000000\r\nsecond_repl_offset:-1\r\n";
  EXPECT_EQ(IdentityIn(kServer, kReplication),
            (ServerIdentity{
                .run = 0x7c2be71122334455, .replication = 0x75367c0000000001, .age = 4'638'591us}));
  EXPECT_EQ(
      IdentityIn("run_id:ff\r\nuptime_in_seconds:0\r\n", "role:slave\r\nmaster_replid:0a\r\n"),
      (ServerIdentity{.run = 0xff, .replication = 0xa, .primary = false}));
  EXPECT_EQ(IdentityIn("", ""), ServerIdentity{});
  EXPECT_EQ(IdentityIn("uptime_in_seconds:99999999999999999999\r\nserver_time_usec:-5\r\n", "").age,
            0s)
      << "nonsense";
}

}  // namespace shard_histories_test
}  // namespace headgate::store::redis
