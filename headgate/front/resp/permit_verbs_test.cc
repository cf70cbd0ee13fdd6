// HG.ACQUIRE and HG.RELEASE, with permits in memory and in a store that answers later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/access/access_rig.h"
#include "headgate/front/resp/session.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"
#include "headgate/testing/permit_rules.h"
#include "headgate/wire/permit_id.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace permit_verbs_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using wire::RespValue;
using Words = std::vector<std::string>;

std::string Command(const Words& words) {
  std::string bytes;
  wire::RespWriter writer(bytes, wire::RespVersion::k2);
  writer.Array(words.size());
  for (const std::string& word : words) writer.Bulk(word);
  return bytes;
}

// `options` stand before ENTRIES.
Words Acquiring(const Words& options, const std::string& key = "job") {
  Words words{"HG.ACQUIRE", "d"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"ENTRIES", "1", key, "ann"});
  return words;
}
Words Releasing(const std::string& id, const std::string& key = "job") {
  return {"HG.RELEASE", "d", "ID", id, "ENTRIES", "1", key, "ann"};
}

struct Memory {
  static constexpr bool kShares = false;
};
struct Shared {
  static constexpr bool kShares = true;
};

// A server and one client.
class Desk {
 public:
  explicit Desk(bool shares, access::AccessOptions options = {})
      : access_(std::move(options)),
        checker_(shares ? limiter::Checker(limiter_, 0, decider_, {}) : limiter::Checker(limiter_)),
        context_({.checker = checker_, .access = access_, .version = "1"}) {
    HEADGATE_CHECK(limiter_.OnRules(testing::PermitRules("d", "job"), now).ok());
    Connect();
  }

  void Connect() {
    session_ = std::make_unique<RespSession>(context_, net::Peer{.loopback = true});
    session_->SetWaker([] {});
    rest_.clear();
  }
  void Disconnect() { session_ = nullptr; }

  // Feeds bytes, and answers nothing that is asked of the store.
  void Arrive(const std::string& bytes) {
    rest_ += bytes;
    do {
      progress = session_->OnBytes(rest_, output, now);
      rest_.erase(0, progress.consumed);
    } while (progress.more);
  }
  std::vector<RespValue> Send(const std::string& bytes) {
    output.clear();
    Arrive(bytes);
    while (progress.waiting()) {
      shared.AnswerAll();
      Arrive("");
    }
    shared.AnswerAll();  // releases that nobody waits for
    return Replies();
  }
  RespValue Ask(const Words& words) {
    std::vector<RespValue> replies = Send(Command(words));
    EXPECT_EQ(replies.size(), 1u) << output;
    return replies.empty() ? RespValue{} : std::move(replies.front());
  }
  std::vector<RespValue> Replies() {
    std::vector<RespValue> replies;
    wire::RespReader reader;
    for (std::string_view left = output; !left.empty();) {
      size_t consumed = 0;
      if (reader.Read(left, consumed) != wire::RespReader::Step::kValue) break;
      replies.push_back(std::move(reader.value()));
      left.remove_prefix(consumed);
    }
    return replies;
  }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore store{store::MemoryOptions{.max_buckets = 4096}};
  testing::ManualSharedStore shared{store, now};
  std::string output;
  net::Session::Progress progress;

 private:
  access::Access access_;
  limiter::shared::SharedDecider decider_{shared, store, {}};
  limiter::Limiter limiter_{store, nullptr};
  limiter::Checker checker_;
  Context context_;
  std::unique_ptr<RespSession> session_;
  std::string rest_;
};

RespValue Field(const RespValue& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return map.items[i + 1];
  }
  ADD_FAILURE() << "no " << name << " in " << map.ToString();
  return {};
}
int64_t Number(const RespValue& map, std::string_view name) {
  const RespValue value = Field(map, name);
  return value.kind == RespValue::Kind::kNull ? -1 : value.integer;
}

template <typename Place>
struct PermitVerbs : ::testing::Test {
  RespValue Acquire(const Words& options = {}, const std::string& key = "job") {
    return desk.Ask(Acquiring(options, key));
  }
  bool Passes(const Words& options = {}, const std::string& key = "job") {
    return Number(Acquire(options, key), "allowed") == 1;
  }
  RespValue Release(const std::string& id, const std::string& key = "job") {
    return desk.Ask(Releasing(id, key));
  }
  Desk desk{Place::kShares};
};
using Places = ::testing::Types<Memory, Shared>;
TYPED_TEST_SUITE(PermitVerbs, Places);

TYPED_TEST(PermitVerbs, AnswerTheFieldsOfTheHttpFront) {
  const std::string mode = TypeParam::kShares ? R"(, "mode", "exact")" : "";
  EXPECT_EQ(this->Acquire({"ID", "a"}).ToString(),
            R"(["allowed", 1, "decisions", [["allowed", 1, "limit", 2, "remaining", 1, )"
            R"("retry_after_ms", 0, "reset_after_ms", 30000, "wait_ms", 0, "rule", "job", )"
            R"("shadow", 0)" +
                mode + R"(]], "id", "a", "in_flight", 1, "limit", 2, "expires_in_ms", 30000])");
  EXPECT_EQ(this->Release("a").ToString(),
            R"(["released", 1, "permits", [["released", 1, "in_flight", 0, "limit", 2, )"
            R"("rule", "job"]]])");
}

TYPED_TEST(PermitVerbs, AnswerMapsInResp3) {
  this->desk.Send("HELLO 3\r\n");
  EXPECT_THAT(this->Acquire({"ID", "a"}).ToString(),
              MatchesRegex(R"(\{"allowed": true, "decisions": .*\}\], "id": "a", "in_flight": 1, )"
                           R"("limit": 2, "expires_in_ms": 30000\})"));
  EXPECT_EQ(this->Release("a").ToString(),
            R"({"released": true, "permits": [{"released": true, "in_flight": 0, "limit": 2, )"
            R"("rule": "job"}]})");
}

TYPED_TEST(PermitVerbs, AreGrantedUntilTheLimitAndAgainAfterARelease) {
  const std::string first = Field(this->Acquire(), "id").text;
  const std::string second = Field(this->Acquire(), "id").text;
  EXPECT_THAT(first, MatchesRegex("[0-9a-f]{32}"));
  EXPECT_NE(first, second);
  const RespValue third = this->Acquire();
  EXPECT_EQ(Number(third, "allowed"), 0);
  EXPECT_EQ(Number(third, "in_flight"), 2);
  EXPECT_EQ(Number(third, "expires_in_ms"), -1);
  EXPECT_EQ(Number(Field(third, "decisions").items.at(0), "retry_after_ms"), 1'000);
  EXPECT_EQ(Number(this->Release(first), "released"), 1);
  EXPECT_EQ(Number(this->Release(first), "released"), 0);
  EXPECT_TRUE(this->Passes());
  EXPECT_FALSE(this->Passes());
}

TYPED_TEST(PermitVerbs, AnIdHoldsOnePermitHoweverOftenItIsAcquired) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Number(this->Acquire({"ID", "a"}), "in_flight"), 1);
  EXPECT_EQ(Number(this->Acquire({"ID", "b"}), "in_flight"), 2);
  EXPECT_FALSE(this->Passes({"ID", "c"}));
  EXPECT_TRUE(this->Passes({"ID", "a"})) << "it holds one";
  EXPECT_EQ(Number(this->Release("a"), "released"), 1);
  EXPECT_TRUE(this->Passes({"ID", "c"}));
}

TYPED_TEST(PermitVerbs, EndAfterTheirTtlWhichARepetitionRenews) {
  EXPECT_EQ(Number(this->Acquire({"ID", "a", "PX", "5000"}), "expires_in_ms"), 5000);
  EXPECT_EQ(Number(this->Acquire({"px", "60000", "id", "b"}), "expires_in_ms"), 30'000)
      << "at most as long as the rule says";
  this->desk.now += 4s;
  this->Acquire({"ID", "a", "PX", "5000"});
  this->desk.now += 5s - 1ns;
  EXPECT_FALSE(this->Passes({"ID", "c"}));
  this->desk.now += 1ns;
  EXPECT_TRUE(this->Passes({"ID", "c"}));
  EXPECT_EQ(Number(this->Release("a"), "released"), 0);
}

TYPED_TEST(PermitVerbs, ACostOfZeroLooksAndTakesNone) {
  const RespValue answer = this->Acquire({"ID", "a", "COST", "0"});
  EXPECT_EQ(Number(answer, "allowed"), 1);
  EXPECT_EQ(Number(answer, "in_flight"), 0);
  EXPECT_EQ(Number(answer, "expires_in_ms"), -1);
  EXPECT_EQ(Number(this->Release("a"), "released"), 0);
}

TYPED_TEST(PermitVerbs, ABucketThatDeniesGivesThePermitBack) {
  const std::string id = Field(this->Acquire({}, "both"), "id").text;
  EXPECT_FALSE(this->Passes({}, "both"));
  EXPECT_EQ(Number(Field(this->Release(id, "both"), "permits").items.at(0), "in_flight"), 0);
}

TYPED_TEST(PermitVerbs, OtherVerbsOnlyLook) {
  const Words check{"HG.CHECK", "d", "ENTRIES", "1", "job", "ann"};
  for (int i = 0; i < 3; ++i) {
    const RespValue decision = Field(this->desk.Ask(check), "decisions").items.at(0);
    EXPECT_EQ(Number(decision, "remaining"), 2);
  }
  this->Acquire();
  this->Acquire();
  EXPECT_EQ(Number(this->desk.Ask(check), "allowed"), 0);
}

TYPED_TEST(PermitVerbs, WithoutARuleNothingIsHeld) {
  const RespValue unknown = this->Acquire({"ID", "a"}, "unknown");
  EXPECT_EQ(Number(unknown, "allowed"), 1);
  for (const std::string_view name : {"in_flight", "limit", "expires_in_ms"})
    EXPECT_EQ(Field(unknown, name).kind, RespValue::Kind::kNull) << name;
  EXPECT_EQ(this->Release("a", "unknown").ToString(),
            R"(["released", 0, "permits", [["released", 0, "in_flight", nil, "limit", nil, )"
            R"("rule", nil]]])");
  const RespValue plain = this->Acquire({}, "plain");
  EXPECT_EQ(Number(Field(plain, "decisions").items.at(0), "remaining"), 4);
  EXPECT_EQ(Number(plain, "limit"), -1);
}

TYPED_TEST(PermitVerbs, SeveralDescriptorsTakeAPermitOfEachOrNone) {
  const Words both{"HG.ACQUIRE", "d",   "ID",      "a", "ENTRIES", "1",
                   "job",        "ann", "ENTRIES", "1", "job",     "ben"};
  EXPECT_EQ(Number(this->desk.Ask(both), "allowed"), 1);
  const std::string released = this->desk
                                   .Ask({"HG.RELEASE", "d", "ID", "a", "ENTRIES", "1", "job", "ben",
                                         "ENTRIES", "1", "job", "ann"})
                                   .ToString();
  EXPECT_EQ(released,
            R"(["released", 1, "permits", [["released", 1, "in_flight", 0, "limit", 2, )"
            R"("rule", "job"], ["released", 1, "in_flight", 0, "limit", 2, "rule", "job"]]])");
}

TYPED_TEST(PermitVerbs, AreExecutedInATransaction) {
  const std::vector<RespValue> replies =
      this->desk.Send(Command({"MULTI"}) + Command(Acquiring({"ID", "a"})) +
                      Command(Releasing("a")) + Command(Releasing("a")) + Command({"EXEC"}));
  ASSERT_EQ(replies.size(), 5u);
  const std::vector<RespValue>& executed = replies.back().items;
  ASSERT_EQ(executed.size(), 3u);
  EXPECT_EQ(Number(executed[0], "in_flight"), 1);
  EXPECT_EQ(Number(executed[1], "released"), 1);
  EXPECT_EQ(Number(executed[2], "released"), 0);
}

TYPED_TEST(PermitVerbs, APipelineIsAnsweredInItsOrder) {
  std::string bytes;
  for (const std::string id : {"a", "b", "c"}) bytes += Command(Acquiring({"ID", id}));
  bytes += Command(Releasing("a")) + Command(Releasing("c")) + Command(Acquiring({"ID", "d"})) +
           Command({"PING"}) + Command({"HG.CHECK", "d", "ENTRIES", "1", "job", "ann"});
  const std::vector<RespValue> replies = this->desk.Send(bytes);
  ASSERT_EQ(replies.size(), 8u);
  const auto of = [&](std::string_view name, std::initializer_list<size_t> places) {
    std::vector<int64_t> numbers;
    for (const size_t i : places) numbers.push_back(Number(replies[i], name));
    return numbers;
  };
  EXPECT_THAT(of("allowed", {0, 1, 2, 5, 7}), ElementsAre(1, 1, 0, 1, 0));
  EXPECT_THAT(of("released", {3, 4}), ElementsAre(1, 0));
  EXPECT_EQ(replies[6].text, "PONG");
}

TYPED_TEST(PermitVerbs, BadArgumentsGetTheirExactErrorAndTakeNothing) {
  const std::string id_needed =
      "HG.RELEASE needs ID and the id that HG.ACQUIRE answered, before ENTRIES";
  const auto px = [](const std::string& text) {
    return "PX must be a whole number of milliseconds from 1000 to 86400000, not '" + text + "'";
  };
  struct Case {
    Words words;
    std::string error;
  };
  const Case cases[] = {
      {{"HG.ACQUIRE", "d", "ENTRIES", "1", "job"},
       "wrong number of arguments for 'hg.acquire' command"},
      {{"HG.RELEASE", "d", "ENTRIES", "1", "job", "ann"},
       "wrong number of arguments for 'hg.release' command"},
      {{"HG.RELEASE", "d", "ENTRIES", "1", "job", "ann", "ID", "a"}, id_needed},
      {Acquiring({"PX", "999"}), px("999")},
      {Acquiring({"PX", "86400001"}), px("86400001")},
      {Acquiring({"PX", "5s"}), px("5s")},
      {Acquiring({"ID", ""}), "ID must have 1 to 128 bytes"},
      {Acquiring({"ID", std::string(129, 'x')}), "ID must have 1 to 128 bytes"},
      {Releasing(""), "ID must have 1 to 128 bytes"},
      {Acquiring({"COST", "18446744073709551615"}),
       "COST must be a whole number from 0 to 9223372036854775807, not '18446744073709551615'"},
      {Acquiring({"COST", "-1"}),
       "COST must be a whole number from 0 to 9223372036854775807, not '-1'"},
      {Acquiring({"ID", "a", "ID", "b"}), "syntax error: ENTRIES was expected, not 'ID'"},
      {{"HG.ACQUIRE", "d", "ID", "a", "PX", "5000", "COST"}, "syntax error: COST has no value"},
      {{"HG.ACQUIRE", "d", "ID", "a", "PX", "5000"}, "syntax error: ENTRIES was expected"},
      {{"HG.RELEASE", "d", "ID", "a", "PX", "5000", "ENTRIES", "1", "job", "ann"},
       "syntax error: ENTRIES was expected, not 'PX'"},
      {{"HG.RELEASE", "d", "COST", "1", "ID", "a", "ENTRIES", "1", "job", "ann"}, id_needed},
      {{"HG.CHECK", "d", "ID", "a", "ENTRIES", "1", "job", "ann"},
       "syntax error: ENTRIES was expected, not 'ID'"},
      {{"HG.ACQUIRE", "", "ENTRIES", "1", "job", "ann"}, "rate limit domain must not be empty"},
      {{"HG.ACQUIRE", "d", "ENTRIES", "1", "", "ann"}, "a key of ENTRIES must not be empty"},
  };
  for (const Case& c : cases) {
    const RespValue reply = this->desk.Ask(c.words);
    EXPECT_TRUE(reply.is_error());
    EXPECT_EQ(reply.text, "ERR " + c.error);
  }
  EXPECT_EQ(Number(this->Acquire({"ID", std::string(128, 'x')}), "in_flight"), 1);
}

TEST(PermitVerbsOverAStore, CommandsOfOneReadAreAskedTogetherIfTheyAreOfOneKind) {
  Desk desk(true);
  std::string bytes;
  for (const std::string id : {"a", "b", "c"}) bytes += Command(Acquiring({"ID", id}));
  for (const std::string id : {"a", "b"}) bytes += Command(Releasing(id));
  bytes += Command({"HG.CHECK", "d", "ENTRIES", "1", "job", "ann"});
  desk.Arrive(bytes);
  std::vector<size_t> together;
  while (desk.progress.waiting()) {
    together.push_back(desk.shared.waiting());
    desk.shared.AnswerAll();
    desk.Arrive("");
  }
  EXPECT_THAT(together, ElementsAre(3, 2, 1));
  EXPECT_EQ(desk.Replies().size(), 6u);
}

TEST(PermitVerbsOverAStore, CommandsThatAskTwiceAreAskedTogetherBothTimes) {
  for (const std::string verb : {"HG.ACQUIRE", "HG.CHECK"}) {
    std::string bytes;
    for (const std::string value : {"ann", "ben", "ann", "cyd"})
      bytes += Command({verb, "d", "ENTRIES", "1", "both", value});
    // The bucket of a rule without permits is asked once, together with the first questions of the
    // other commands.
    bytes += Command({verb, "d", "ENTRIES", "1", "plain", "ann"});
    Desk desk(true);
    desk.Arrive(bytes);
    std::vector<size_t> together;
    while (desk.progress.waiting()) {
      together.push_back(desk.shared.waiting());
      desk.shared.AnswerAll();
      desk.Arrive("");
    }
    EXPECT_THAT(together, ElementsAre(5, 4)) << verb;
    desk.shared.AnswerAll();
    Desk at_hand(false);
    at_hand.Arrive(bytes);
    const std::vector<RespValue> expected = at_hand.Replies();
    const std::vector<RespValue> replies = desk.Replies();
    ASSERT_EQ(replies.size(), 5u);
    for (size_t i = 0; i < replies.size(); ++i)
      EXPECT_EQ(Number(replies[i], "allowed"), Number(expected[i], "allowed")) << verb << i;
  }
}

TEST(PermitVerbsOverAStore, AConnectionThatEndsMeanwhileGivesBackWhatItWouldHaveGot) {
  for (const Words& options : {Words{}, Words{"ID", "a"}}) {
    Desk desk(true);
    desk.Arrive(Command(Acquiring(options)) + Command(Acquiring({})));
    ASSERT_EQ(desk.shared.waiting(), 2u);
    desk.Disconnect();
    desk.shared.AnswerAll();
    EXPECT_EQ(desk.shared.PermitsIn("hg:{p|d|job=ann}"), 0u);
  }
}

TEST(PermitVerbsOverAStore, APermitThatWasGrantedAheadGoesBackIfItsAnswerIsNeverWritten) {
  Desk desk(true);
  desk.Arrive(Command(Acquiring({})));
  ASSERT_TRUE(desk.progress.waiting());
  desk.shared.failure = absl::UnavailableError("away");
  desk.shared.at_once = true;
  desk.Arrive(Command(Acquiring({})));
  EXPECT_EQ(desk.output, "") << "the first one still waits";
  desk.Disconnect();
  desk.shared.AnswerAll();
  desk.Connect();
  EXPECT_EQ(Number(desk.Ask(Acquiring({})), "in_flight"), 1);
}

TEST(PermitVerbsOverAStore, AConnectionEndsWithItsPeerOnlyWhileAPermitIsAwaited) {
  const std::string check = Command({"HG.CHECK", "d", "ENTRIES", "1", "plain", "ann"});
  Desk desk(true);
  desk.Arrive(check + Command(Acquiring({})) + check);
  ASSERT_EQ(desk.shared.waiting(), 1u) << "the first check";
  EXPECT_FALSE(desk.progress.ends_with_peer);
  desk.shared.AnswerAll();
  desk.Arrive("");
  ASSERT_EQ(desk.shared.waiting(), 1u) << "the permit";
  EXPECT_TRUE(desk.progress.ends_with_peer);
  desk.shared.AnswerAll();
  desk.Arrive("");
  ASSERT_EQ(desk.shared.waiting(), 1u) << "the second check";
  EXPECT_FALSE(desk.progress.ends_with_peer);
  desk.shared.AnswerAll();
  desk.Arrive("");
  EXPECT_EQ(desk.Replies().size(), 3u);
  EXPECT_FALSE(desk.progress.ends_with_peer);
  desk.Arrive(Command(Releasing("a")));
  ASSERT_EQ(desk.shared.waiting(), 1u) << "a release";
  EXPECT_FALSE(desk.progress.ends_with_peer);
}

// EXEC writes the reply of the first command after the last one has been answered.
TEST(PermitVerbsOverAStore, APermitOfATransactionThatEndsInTheMiddleGoesBack) {
  for (const bool ends : {true, false}) {
    Desk desk(true);
    desk.Arrive("MULTI\r\n" + Command(Acquiring({})) +
                Command({"HG.CHECK", "d", "ENTRIES", "1", "plain", "ann"}) + "EXEC\r\n");
    ASSERT_EQ(desk.shared.waiting(), 1u);
    EXPECT_TRUE(desk.progress.ends_with_peer);
    desk.shared.AnswerAll();
    desk.Arrive("");
    ASSERT_EQ(desk.shared.waiting(), 1u) << "the check";
    EXPECT_TRUE(desk.progress.ends_with_peer);
    EXPECT_EQ(desk.shared.PermitsIn("hg:{p|d|job=ann}"), 1u);
    if (!ends) {
      desk.shared.AnswerAll();
      desk.Arrive("");
      EXPECT_FALSE(desk.progress.waiting());
    }
    desk.Disconnect();
    desk.shared.AnswerAll();
    EXPECT_EQ(desk.shared.PermitsIn("hg:{p|d|job=ann}"), ends ? 0u : 1u);
  }
}

TEST(PermitVerbsOverAStore, APermitThatMayHaveBeenGrantedIsGivenBackUnlessItsIdIsTheCallers) {
  for (const bool is_given : {false, true}) {
    Desk desk(true);
    desk.Arrive(Command(Acquiring(is_given ? Words{"ID", "a"} : Words{})));
    ASSERT_EQ(desk.shared.waiting(), 1u);
    desk.shared.failure = absl::DeadlineExceededError("slow");
    desk.shared.AnswerOne();
    EXPECT_EQ(desk.shared.waiting(), is_given ? 0u : 1u) << "a release";
  }
}

TEST(PermitVerbsOverAStore, WithoutTheStoreThePolicyOfTheRuleDecides) {
  Desk desk(true);
  desk.shared.failure = absl::UnavailableError("away");
  const RespValue local = desk.Ask(Acquiring({"ID", "a"}));
  EXPECT_EQ(Field(Field(local, "decisions").items.at(0), "mode").text, "local");
  EXPECT_EQ(Number(desk.Ask(Releasing("a")), "released"), 1);
  const RespValue other = desk.Ask(Releasing("b"));
  EXPECT_TRUE(other.is_error());
  EXPECT_THAT(other.text, HasSubstr("ERR the shared store cannot be reached: no permit of rule job "
                                    "was released"));
  const RespValue open = desk.Ask(Acquiring({}, "open"));
  EXPECT_EQ(Number(open, "allowed"), 1);
  EXPECT_EQ(Number(open, "expires_in_ms"), -1) << "it has no permit";
}

TEST(PermitVerbsOverAStore, AnIdIsThatOfTheHttpFront) {
  Desk desk(true);
  desk.Ask(Acquiring({"ID", "job-7"}));
  permit::Answer answer;
  desk.shared.AskPermits(
      {.name = "hg:{p|d|job=ann}",
       .ask = {.kind = permit::Ask::Kind::kRelease, .id = wire::HashOfPermitId("job-7")}},
      [&](const absl::StatusOr<permit::Answer>& got) { answer = *got; });
  desk.shared.AnswerAll();
  EXPECT_EQ(answer.outcome, permit::Answer::Outcome::kReleased);
}

TEST(PermitVerbs, NeedTheRightToCheck) {
  for (const Words& words : {Acquiring({}), Releasing("a")}) {
    Desk without(false, {.users = access::Everybody(access::Rights::Of(access::Right::kRefund))});
    EXPECT_EQ(without.Ask(words).text, "NOAUTH Authentication required.");
    Desk with(false, {.users = access::Everybody(access::Rights::Of(access::Right::kCheck))});
    EXPECT_FALSE(with.Ask(words).is_error());
  }
}

}  // namespace permit_verbs_test
}  // namespace headgate::front::resp
