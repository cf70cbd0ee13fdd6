// A session whose decisions come later gives the same replies as one with immediate decisions, for
// any input in any pieces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "headgate/access/access_rig.h"
#include "headgate/front/resp/conversation.h"
#include "headgate/front/resp/session.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::front::resp {
namespace shared_store_test {

using ::testing::StartsWith;

// A server with rules for `user` and `job` in domain `d`, and one client.
class Side {
 public:
  explicit Side(bool shares, bool leases = false, access::AccessOptions options = {})
      : access_(std::move(options)),
        fleet_(shared, store_, {.leases = leases ? &leases_ : nullptr}),
        checker_(shares ? limiter::Checker(limiter_, 0, fleet_, {}) : limiter::Checker(limiter_)),
        context_({.checker = checker_, .access = access_, .version = "1"}),
        session_(context_, {.loopback = true}) {
    session_.SetWaker([this] { ++woken; });
    const rule::read::RuleFile file{
        .name = "f.yaml",
        .text =
            "domain: d\n"
            "descriptors:\n"
            "- key: user\n"
            "  rate_limit: {algorithm: token_bucket, period: 10s, requests_per_unit: 9}\n"
            "- key: job\n"
            "  rate_limit: {algorithm: concurrency, requests: 3, ttl: 30s}\n"};
    EXPECT_TRUE(limiter_.OnRules(rule::read::LoadRules({&file, 1}).rules, now_).ok());
  }

  // Feeds arriving bytes; if the session waits, feeds no more until Answer.
  void Arrive(std::string_view bytes) {
    rest_.append(bytes);
    if (!progress.waiting()) Feed();
  }
  void Answer() {
    const int before = woken;
    shared.AnswerAll();
    ASSERT_EQ(woken, before + 1);
    Feed();
  }
  void AnswerEverything() {
    while (progress.waiting()) Answer();
  }
  // Everybody has these rights, without a login.
  void GiveRights(access::Rights rights) { access_.Replace(access::Everybody(rights)); }
  uint64_t commands() const { return context_.counters.commands.value(); }
  size_t buffered_bytes() const { return session_.BufferedBytes(); }

  void Feed() {
    do {
      progress = session_.OnBytes(rest_, output, now_);
      // Unconsumed bytes have a different address in the next call.
      rest_ = std::string(std::string_view(rest_).substr(progress.consumed));
    } while (progress.more);
  }

  std::string output;
  net::Session::Progress progress;
  int woken = 0;
  OwnLimits own_limits;

 private:
  base::Instant now_ = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store_{store::MemoryOptions{.max_buckets = 4096}};
  access::Access access_;

 public:
  testing::ManualSharedStore shared{store_, now_};

 private:
  limiter::Limiter limiter_{store_, &own_limits};
  limiter::lease::LeaseBooks leases_{{.node = 1, .keys_max = 64}, 1};
  limiter::shared::SharedDecider fleet_;
  limiter::Checker checker_;
  Context context_;
  RespSession session_;
  std::string rest_;
};

std::string Command(const std::vector<std::string>& words) {
  std::string bytes;
  wire::RespWriter writer(bytes, wire::RespVersion::k2);
  writer.Array(words.size());
  for (const std::string& word : words) writer.Bulk(word);
  return bytes;
}

std::string RandomCommand(std::mt19937_64& random) {
  const std::string key = "k" + std::to_string(random() % 5);
  switch (random() % 26) {
    case 0:
      return Command({"PING"});
    case 1:
      return "ECHO inline\r\n";
    case 2:
      return Command({"CL.THROTTLE", key, "many", "1", "1"});
    case 3:
      return "cl.throttle  \"" + key + "\" 3 10 60\r\n";
    case 4:
      // A limit of its own. There are more of them than the cache holds.
      return Command({"CL.THROTTLE", key, std::to_string(random() % 3000), "7", "60"});
    case 5:
      return "\r\n";
    case 6:
    case 7:
    case 8:
      return Command({"HG.CHECK", "d", "ENTRIES", "1", "user", key});
    case 9:
      return Command({"HG.PEEK", "d", "ENTRIES", "1", "user", key});
    case 10:
      // None of these waits: they match no rule or are malformed.
      return Command({"HG.CHECK", random() % 2 == 0 ? "other" : "d", "ENTRIES", "1", "user", key,
                      "more"}) +
             Command({"hg.check", "other", "ENTRIES", "1", "user", key});
    case 11:
    case 14:
      return Command({"MULTI"});
    case 15:
      return Command({"GCRA", key, "15", "30", "60.0", "TOKENS", std::to_string(random() % 3)});
    case 16:
      return Command(
          {"EVAL", "return redis.call('CL.THROTTLE', KEYS[1], 15, 30, ARGV[1])", "1", key, "60"});
    case 17:
    case 18:
      return Command({"HG.CHECKM", key, "15", "30", "60", "1", "k" + std::to_string(random() % 5),
                      "15", "30", "60", "2"});
    case 19:
    case 20:
      return Command({"HG.ACQUIRE", "d", "ID", key, "ENTRIES", "1", "job", "j"});
    case 21:
      return Command({"HG.RELEASE", "d", "ID", key, "ENTRIES", "1", "job", "j"}) +
             Command({"HG.RELEASE", "d", "ID", "k1", "ENTRIES", "1", "job", "j"});
    case 22:
      return Command({"HG.PEEK", "d", "ENTRIES", "1", "job", "j"});
    case 24:
      return Command({"INCREX", "n" + key, "BYINT", std::to_string(random() % 9), "UBOUND", "99"});
    case 25:
      // A pipeline with some invalid commands.
      return Command({"INCREX", "n" + key, "BYFLOAT", "0.5", "SATURATE", "UBOUND", "9"}) +
             Command({"INCREX", "f" + key, "BYFLOAT", "-1.25"}) +
             Command({"INCREX", "n" + key, random() % 2 == 0 ? "ENX" : "PERSIST"}) +
             Command({"INCREX", "f" + key});
    case 12:
    case 13:
      return Command({random() % 2 == 0 ? "EXEC" : "DISCARD"});
    default:
      return Command({"CL.THROTTLE", key, "15", "30", "60", std::to_string(random() % 3)});
  }
}

// Only a shared decision reports its mode.
std::string WithoutModes(std::string output) {
  constexpr std::string_view kMode = "$4\r\nmode\r\n$5\r\nexact\r\n";
  for (size_t at = output.find(kMode); at != std::string::npos; at = output.find(kMode)) {
    output.erase(at, kMode.size());
    output.replace(output.rfind("*18\r\n", at), 5, "*16\r\n");
  }
  return output;
}

TEST(SharedStore, AnswersInAnyPiecesAreThoseOfDecisionsAtHand) {
  std::mt19937_64 random(7);
  Side at_hand(false);
  Side later(true);
  for (int round = 0; round < 300; ++round) {
    std::string bytes;
    for (uint64_t n = random() % 150; n > 0; --n) bytes += RandomCommand(random);
    at_hand.Arrive(bytes);
    for (std::string_view left = bytes; !left.empty();) {
      const size_t piece = std::min<size_t>(left.size(), 1 + random() % 700);
      later.Arrive(left.substr(0, piece));
      left.remove_prefix(piece);
      if (later.progress.waiting() && random() % 2 == 0) later.Answer();
    }
    later.AnswerEverything();
    ASSERT_EQ(WithoutModes(later.output), at_hand.output) << "round " << round;
    ASSERT_EQ(later.commands(), at_hand.commands());
    at_hand.output.clear();
    later.output.clear();
  }
}

constexpr std::string_view kNoLogin = "-NOAUTH Authentication required.\r\n";

struct Guarded : Side {
  explicit Guarded(access::Rights rights)
      : Side(true, false, {.users = access::Everybody(rights)}) {}
};

std::string Check(const std::string& verb, const std::string& value) {
  return Command({verb, "d", "ENTRIES", "1", "user", value});
}

class SentCommand : public ::testing::TestWithParam<std::string> {};

TEST_P(SentCommand, IsAnsweredThoughTheRightsAreLostAndItsAnswersServeNoOtherCommand) {
  Guarded undisturbed(access::Rights::All());
  Guarded side(access::Rights::All());
  const std::string prepare = Command({"CL.THROTTLE", "k", "9", "1", "1000", "3"}) +
                              Command({"INCREX", "k", "BYINT", "5"}) + Check("HG.CHECK", "ann") +
                              Check("HG.CHECK", "ann");
  const auto exchange = [&](Side& of, const std::string& bytes) {
    of.output.clear();
    of.Arrive(bytes);
    of.AnswerEverything();
    return of.output;
  };
  exchange(undisturbed, prepare);
  exchange(side, prepare);

  const std::string expected = exchange(undisturbed, GetParam());
  EXPECT_THAT(expected, ::testing::Not(::testing::HasSubstr("\n-")));
  side.output.clear();
  side.Arrive(GetParam() + Command({"DBSIZE"}));
  ASSERT_TRUE(side.progress.waiting());
  side.GiveRights({});
  side.AnswerEverything();
  EXPECT_EQ(side.output, expected + std::string(kNoLogin));
  EXPECT_EQ(side.shared.waiting(), 0u);

  side.GiveRights(access::Rights::All());
  for (const std::string& next :
       {Check("HG.CHECK", "ben"), Command({"CL.THROTTLE", "new", "9", "1", "1000"}),
        Command({"INCREX", "new"}),
        Command({"HG.CHECKM", "a", "9", "1", "60", "1", "b", "9", "1", "60", "1", "c", "9", "1",
                 "60", "1"}),
        Command({"DEL", "new"})})
    EXPECT_EQ(exchange(side, next), exchange(undisturbed, next)) << next;
}

INSTANTIATE_TEST_SUITE_P(
    OfEachKind, SentCommand,
    ::testing::Values(
        Check("HG.CHECK", "ann"), Check("HG.PEEK", "ann"), Check("HG.REFUND", "ann"),
        Check("HG.RESET", "ann"), Check("HG.CHECK", "ann") + Check("HG.CHECK", "ben"),
        Command({"HG.ACQUIRE", "d", "ID", "a", "ENTRIES", "1", "user", "ann"}),
        Check("HG.REFUND", "ann") + Check("HG.CHECK", "ann"),
        Command({"CL.THROTTLE", "k", "9", "1", "1000"}),
        Command({"CL.THROTTLE", "k", "9", "1", "1000"}) + Command({"GCRA", "k", "9", "1", "1000"}),
        Command({"HG.CHECKM", "k", "9", "1", "1000", "1", "other", "9", "1", "60", "1"}),
        Command({"DEL", "k", "other"}), Command({"INCREX", "k"}),
        Command({"INCREX", "k"}) + Command({"INCREX", "other"}),
        Command({"MULTI"}) + Command({"INCREX", "k"}) + Command({"EXEC"}),
        Command({"MULTI"}) + Check("HG.CHECK", "ann") + Command({"EXEC"})));

TEST(SharedStore, ATransactionStopsToBeAllowedBetweenTwoOfItsCommands) {
  Guarded side(access::Rights::All());
  side.Arrive(Command({"MULTI"}) + Command({"INCREX", "k"}) + Command({"INCREX", "k"}) +
              Command({"EXEC"}));
  ASSERT_TRUE(side.progress.waiting());
  side.GiveRights({});
  side.AnswerEverything();
  EXPECT_EQ(side.output,
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*2\r\n:1\r\n:1\r\n" + std::string(kNoLogin));
}

TEST(SharedStore, WhatIsAskedAheadNeedsItsOwnRight) {
  Guarded side(access::Rights::Of(access::Right::kRefund));
  side.Arrive(Check("HG.REFUND", "ann") + Check("HG.CHECK", "ben"));
  EXPECT_EQ(side.shared.waiting(), 1u) << "only the refund";
  side.AnswerEverything();
  EXPECT_THAT(side.output, ::testing::EndsWith(std::string(kNoLogin)));
}

TEST(SharedStore, CommandsOfOneReadAreAskedTogether) {
  Side side(true);
  std::string bytes;
  for (int i = 0; i < 40; ++i)
    bytes += Command({"CL.THROTTLE", "k" + std::to_string(i), "15", "30", "60"});
  side.Arrive(bytes + Command({"PING"}));
  EXPECT_TRUE(side.progress.waiting());
  EXPECT_EQ(side.shared.waiting(), 40u);
  EXPECT_EQ(side.shared.names()[7], "hg:{t|k7}");
  EXPECT_EQ(side.output, "");
  side.Answer();
  EXPECT_FALSE(side.progress.waiting());
  EXPECT_THAT(side.output, StartsWith("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n"));
  EXPECT_THAT(side.output, ::testing::EndsWith("+PONG\r\n"));
}

TEST(SharedStore, ChecksOfOneReadAreAskedTogetherAndAnsweredInTheirOrder) {
  const auto check = [](const std::string& verb, const std::string& value) {
    return Command({verb, "d", "ENTRIES", "1", "user", value});
  };
  std::string bytes;
  for (int i = 0; i < 10; ++i)
    bytes += check(i % 3 == 0 ? "HG.PEEK" : "HG.CHECK", "k" + std::to_string(i % 4));
  bytes +=
      "\r\n" + Command({"HG.CHECK", "", "ENTRIES", "1", "user", "k"}) + check("HG.CHECK", "last");
  bytes += Command({"PING"}) + check("HG.CHECK", "behind");
  Side at_hand(false);
  at_hand.Arrive(bytes);
  Side side(true);
  side.Arrive(bytes);
  EXPECT_TRUE(side.progress.waiting());
  EXPECT_EQ(side.shared.waiting(), 11u)
      << "all but the wrong one, and what stands behind another command";
  EXPECT_EQ(side.shared.names()[1], "hg:{r|d|user=k1#0}");
  EXPECT_EQ(side.output, "");
  side.Answer();
  EXPECT_TRUE(side.progress.waiting()) << "for what stood behind";
  EXPECT_EQ(side.shared.waiting(), 1u);
  side.Answer();
  EXPECT_EQ(WithoutModes(side.output), at_hand.output);
  EXPECT_EQ(side.commands(), at_hand.commands());
}

TEST(SharedStore, NoMoreChecksAreAskedTogetherThanHaveAPlace) {
  std::string bytes;
  for (int i = 0; i < 150; ++i)
    bytes += Command({"HG.CHECK", "d", "ENTRIES", "1", "user", "k" + std::to_string(i)});
  Side side(true);
  side.Arrive(bytes);
  std::vector<size_t> together;
  while (side.progress.waiting()) {
    together.push_back(side.shared.waiting());
    side.Answer();
  }
  EXPECT_THAT(together, ::testing::ElementsAre(64, 64, 22));
  EXPECT_EQ(side.commands(), 150u);
}

TEST(SharedStore, AWakeThatComesTooSoonAnswersOnlyWhatIsThere) {
  Side side(true);
  side.Arrive(Command({"HG.CHECK", "d", "ENTRIES", "1", "user", "a"}) +
              Command({"HG.CHECK", "d", "ENTRIES", "1", "user", "b"}));
  side.shared.AnswerOne();
  EXPECT_EQ(side.woken, 0);
  side.Feed();
  EXPECT_TRUE(side.progress.waiting());
  EXPECT_THAT(side.output, StartsWith("*4\r\n$7\r\nallowed\r\n:1\r\n"));
  EXPECT_EQ(side.commands(), 1u);
  side.Answer();
  EXPECT_FALSE(side.progress.waiting());
  EXPECT_EQ(side.commands(), 2u);
}

TEST(SharedStore, ALeasedDecisionIsAnsweredOnceWhileTheNextCommandWaits) {
  Side side(true, /*leases=*/true);
  const std::string throttle = Command({"CL.THROTTLE", "k", "1000", "1000", "60"});
  for (int i = 0; i < 3; ++i) {
    side.Arrive(throttle);
    side.AnswerEverything();
  }
  side.output.clear();
  const uint64_t commands = side.commands();
  side.Arrive(throttle + Command({"HG.CHECK", "d", "ENTRIES", "1", "user", "ann"}));
  EXPECT_TRUE(side.progress.waiting());
  EXPECT_THAT(side.output, StartsWith("*5\r\n:0\r\n"));
  const std::string first = side.output;
  side.AnswerEverything();
  EXPECT_THAT(side.output, StartsWith(first + "*4\r\n$7\r\nallowed\r\n:1\r\n"));
  EXPECT_EQ(side.commands(), commands + 2);
}

// The expected values follow from the definition: one token returns every period/count, and the
// bucket is full when all have returned.
TEST(SharedStore, WaitsThatMemoryTellsAreExactHoweverLongOrShort) {
  Side side(true, /*leases=*/true);
  const auto ask = [&](const std::vector<std::string>& words) {
    side.output.clear();
    side.Arrive(Command(words));
    side.AnswerEverything();
    return side.output;
  };
  // 95 years for the only token.
  const std::vector<std::string> slow{"CL.THROTTLE", "slow", "0", "1", "3000000000"};
  EXPECT_EQ(ask(slow), "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:3000000000\r\n");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(ask(slow), "*5\r\n:1\r\n:1\r\n:0\r\n:3000000000\r\n:3000000000\r\n") << i;
  // More than two tokens per nanosecond; never full while half of them are on lease.
  const std::vector<std::string> fast{"CL.THROTTLE", "fast", "2147483648", "2147483648", "1", "1"};
  for (int i = 0; i < 5; ++i) {
    const std::string reply = ask(fast);
    EXPECT_THAT(reply, StartsWith("*5\r\n:0\r\n:2147483649\r\n")) << i;
    EXPECT_THAT(reply, ::testing::EndsWith("\r\n:-1\r\n:1\r\n")) << i;
  }
}

TEST(SharedStore, WithoutTheStoreTheShareOfThisInstanceHolds) {
  Side side(true);
  side.shared.failure = absl::UnavailableError("gone");
  side.shared.at_once = true;
  side.shared.instance_count = 4;
  side.Arrive(Command({"CL.THROTTLE", "k", "15", "4", "60"}));
  EXPECT_FALSE(side.progress.waiting());
  EXPECT_EQ(side.output,
            "*5\r\n:0\r\n:4\r\n:3\r\n:-1\r\n:60\r\n");  // a quarter: a burst of 4, one per minute
}

TEST(SharedStore, ARefundOrAResetWithoutTheStoreSaysThatNothingWasDone) {
  Side side(true);
  side.shared.failure = absl::UnavailableError("gone");
  side.shared.at_once = true;
  side.Arrive(Command({"HG.REFUND", "d", "ENTRIES", "1", "user", "ann"}));
  EXPECT_EQ(side.output,
            "-ERR the shared store cannot be reached: nothing was refunded to rule user\r\n");
  side.output.clear();
  side.Arrive(Command({"HG.RESET", "d", "ENTRIES", "1", "user", "ann"}));
  EXPECT_EQ(side.output,
            "-ERR the shared store cannot be reached: no bucket of rule user was reset\r\n");
}

TEST(SharedStore, DelResetsTheSharedBuckets) {
  Side side(true);
  const std::string throttle = Command({"CL.THROTTLE", "k", "4", "1", "1000"});
  side.Arrive(throttle + throttle + Command({"DEL", "k", "other"}) + throttle);
  side.AnswerEverything();
  EXPECT_EQ(side.output,
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n*5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:2000\r\n:2\r\n"
            "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n");
  side.output.clear();
  side.Arrive(Command({"TTL", "k"}) + Command({"PTTL", "k"}) + Command({"EXISTS", "k"}));
  EXPECT_EQ(
      side.output,
      "-ERR TTL is not supported with a shared store: ask the store for the key hg:{t|KEY} of a "
      "bucket, or hg:{c|KEY} of a counter\r\n"
      "-ERR PTTL is not supported with a shared store: ask the store for the key hg:{t|KEY} of a "
      "bucket, or hg:{c|KEY} of a counter\r\n"
      "-ERR EXISTS is not supported with a shared store: ask the store for the key hg:{t|KEY} of a "
      "bucket, or hg:{c|KEY} of a counter\r\n");
  side.output.clear();
  side.shared.failure = absl::UnavailableError("gone");
  side.shared.at_once = true;
  side.Arrive(Command({"DEL", "k"}));
  EXPECT_EQ(side.output, "-ERR the shared store cannot be reached: not all keys were deleted\r\n");
}

TEST(SharedStore, IncrementsOfOneReadAreAskedTogetherAndAnsweredInTheirOrder) {
  std::string bytes;
  for (int i = 0; i < 150; ++i)
    bytes += Command({"INCREX", "k" + std::to_string(i % 3), "BYINT", std::to_string(i)});
  bytes += Command({"INCREX", "k0", "NONSENSE"}) + Command({"INCREX", "k0"}) + Command({"PING"}) +
           Command({"CL.THROTTLE", "t", "4", "1", "1000"}) + Command({"INCREX", "k1"});
  Side at_hand(false);
  at_hand.Arrive(bytes);
  Side side(true);
  side.Arrive(bytes);
  EXPECT_EQ(side.shared.names()[1], "hg:{c|k1}");
  std::vector<size_t> together;
  while (side.progress.waiting()) {
    together.push_back(side.shared.waiting());
    side.Answer();
  }
  EXPECT_THAT(together, ::testing::ElementsAre(64, 64, 23, 1, 1));
  EXPECT_EQ(side.output, at_hand.output);
  EXPECT_EQ(side.commands(), at_hand.commands());
}

TEST(SharedStore, AnIncrementThatWasSentIsAnsweredInATransactionToo) {
  Side side(true);
  side.Arrive(Command({"MULTI"}) + Command({"INCREX", "k"}) + Command({"INCREX", "k"}) +
              Command({"EXEC"}) + Command({"INCREX", "k"}));
  side.AnswerEverything();
  EXPECT_EQ(side.output,
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n*2\r\n:1\r\n:1\r\n*2\r\n:2\r\n:1\r\n"
            "*2\r\n:3\r\n:1\r\n");
}

TEST(SharedStore, WhatWaitsForItIsCounted) {
  Side side(true);
  const std::string text(4000, 'x');
  side.Arrive(Command({"MULTI"}) + Command({"ECHO", text}) + Command({"ECHO", text}) +
              Command({"INCREX", "k"}) + Command({"EXEC"}));
  ASSERT_TRUE(side.progress.waiting());
  EXPECT_GE(side.buffered_bytes(), 4 * text.size()) << "the commands and the replies";
  side.AnswerEverything();
  const size_t idle = side.buffered_bytes();
  EXPECT_LE(idle, 4096u);
  // No rule applies to the second one, so its answer is kept until its turn.
  const std::string asked = Command({"HG.CHECK", "d", "ENTRIES", "1", "user", "ann"});
  const std::string at_hand = Command({"HG.CHECK", "d", "ENTRIES", "1", "other", "ann"});
  side.output.clear();
  side.Arrive(at_hand);
  const size_t reply_bytes = side.output.size();
  side.Arrive(asked + at_hand);
  ASSERT_TRUE(side.progress.waiting());
  EXPECT_GE(side.buffered_bytes(), idle + reply_bytes);
  EXPECT_LE(side.buffered_bytes(), idle + reply_bytes + 200) << "and the request that waits";
  side.AnswerEverything();
  EXPECT_EQ(side.buffered_bytes(), idle);
}

TEST(SharedStore, ABucketAndACounterOfOneKeyAreApartThereAndDelRemovesBoth) {
  Side side(true);
  side.Arrive(Command({"INCREX", "k"}) + Command({"CL.THROTTLE", "k", "4", "1", "1000"}) +
              Command({"DEL", "k", "other"}) + Command({"INCREX", "k"}) +
              Command({"CL.THROTTLE", "k", "4", "1", "1000"}));
  side.AnswerEverything();
  const std::string both = "*2\r\n:1\r\n:1\r\n*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n";
  EXPECT_EQ(side.output, both + ":2\r\n" + both);
}

TEST(SharedStore, TellsTheKeysOfCommandsThatWaited) {
  Side side(true);
  side.own_limits.HearOwnKeys(true);
  side.Arrive(Command({"CL.THROTTLE", "a", "0", "1", "60"}) +
              Command({"CL.THROTTLE", "a", "0", "1", "60"}) + Command({"PING"}) +
              Command({"CL.THROTTLE", "b", "4", "1", "60", "3"}));
  EXPECT_TRUE(side.own_limits.keys.empty());
  side.AnswerEverything();
  EXPECT_EQ(side.own_limits.keys,
            (std::vector<std::string>{"a allowed 1", "a denied 1", "b allowed 3"}));
}

TEST(SharedStore, AnIncrementWithoutTheStoreIsAnError) {
  Side side(true);
  side.shared.at_once = true;
  side.shared.failure = absl::UnavailableError("gone");
  side.Arrive(Command({"INCREX", "k"}) + Command({"INCREX", "k"}));
  EXPECT_FALSE(side.progress.waiting());
  const std::string error = "-ERR the shared store cannot be reached\r\n";
  EXPECT_EQ(side.output, error + error);
  side.output.clear();
  side.shared.failure = absl::DeadlineExceededError("late");
  side.Arrive(Command({"INCREX", "k"}));
  EXPECT_EQ(side.output,
            "-ERR the shared store cannot be reached: the counter may have been incremented\r\n");
}

TEST(SharedStore, AClosedRuleSaysThatTheStoreCannotBeAsked) {
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{store::MemoryOptions{.max_buckets = 4096}};
  testing::ManualSharedStore shared{store, now};
  shared.failure = absl::UnavailableError("gone");
  shared.at_once = true;
  limiter::shared::SharedDecider fleet(shared, store,
                                       {.on_store_failure = rule::OnStoreFailure::kDeny});
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker(limiter, 0, fleet, {});
  access::Access access;
  Context context({.checker = checker, .access = access, .version = "1"});
  RespSession session(context, {});
  std::string output;
  session.OnBytes(Command({"CL.THROTTLE", "k", "15", "30", "60"}), output, now);
  EXPECT_EQ(output, "-ERR the shared store cannot be reached\r\n");
}

}  // namespace shared_store_test
}  // namespace headgate::front::resp
