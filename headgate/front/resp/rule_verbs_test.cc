// HG.CHECK, HG.PEEK, HG.REFUND and HG.RESET, in both versions of the protocol.
#include "headgate/front/resp/rule_verbs.h"

#include <array>

#include "headgate/front/resp/conversation.h"
#include "headgate/rule/builder.h"
#include "headgate/rule/read/load.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace rule_verbs_test {

using std::chrono::seconds;
using ::testing::HasSubstr;

algorithm::Limit MakeLimit(const algorithm::LimitSpec& spec) {
  return *algorithm::Limit::Make(spec);
}

// A domain `d` with three rules: `user`, 2 per 10 s; `queue`, one per second with two waiting;
// `none`, which never allows.
class RuleVerbsTest : public ::testing::Test {
 protected:
  RuleVerbsTest() {
    const std::array rules{
        rule::PlainRule{.domain = "d",
                        .key = "user",
                        .limits = {MakeLimit({.requests = 2, .period = seconds(10)})}},
        rule::PlainRule{.domain = "d",
                        .key = "queue",
                        .limits = {MakeLimit({.algorithm = algorithm::Algorithm::kLeakyBucketQueue,
                                              .requests = 1,
                                              .period = seconds(1),
                                              .burst = 2})}},
        rule::PlainRule{.domain = "d",
                        .key = "none",
                        .limits = {MakeLimit({.requests = 0, .period = seconds(1)})}},
    };
    auto built = rule::BuildRules(rules);
    EXPECT_TRUE(built.ok()) << built.status();
    EXPECT_TRUE(world_.limiter.OnRules(*built, client_.now).ok());
  }

  std::string Ask(std::initializer_list<std::string_view> words) {
    const std::string bytes = client_.Ask(words);
    wire::RespReader reader;
    size_t consumed = 0;
    const bool whole =
        reader.Read(bytes, consumed) == wire::RespReader::Step::kValue && consumed == bytes.size();
    return whole ? reader.value().ToString() : "not one reply: " + bytes;
  }

  World world_;
  Conversation client_{world_};
};

TEST_F(RuleVerbsTest, AnswersAFlatArrayOfNamesAndValuesInResp2) {
  EXPECT_EQ(
      Ask({"HG.CHECK", "d", "ENTRIES", "1", "user", "ann"}),
      R"(["allowed", 1, "decisions", [["allowed", 1, "limit", 2, "remaining", 1, "retry_after_ms", 0, )"
      R"("reset_after_ms", 5000, "wait_ms", 0, "rule", "user", "shadow", 0]]])");
}

TEST_F(RuleVerbsTest, AnswersAMapInResp3) {
  client_.Send("HELLO 3\r\n");
  EXPECT_EQ(
      Ask({"HG.CHECK", "d", "ENTRIES", "1", "user", "ann"}),
      R"({"allowed": true, "decisions": [{"allowed": true, "limit": 2, "remaining": 1, "retry_after_ms": 0, )"
      R"("reset_after_ms": 5000, "wait_ms": 0, "rule": "user", "shadow": false}]})");
}

TEST_F(RuleVerbsTest, ADenialSaysWhenToRetryInWholeMillisecondsRoundedUp) {
  Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"});
  client_.now += base::Duration(1);
  EXPECT_EQ(
      Ask({"hg.check", "d", "entries", "1", "user", "ann"}),
      R"(["allowed", 0, "decisions", [["allowed", 0, "limit", 2, "remaining", 0, "retry_after_ms", 5000, )"
      R"("reset_after_ms", 10000, "wait_ms", 0, "rule", "user", "shadow", 0]]])");
}

TEST_F(RuleVerbsTest, ARequestThatNeverFitsHasNoRetryAfter) {
  const std::string never = R"("retry_after_ms", nil)";
  EXPECT_THAT(Ask({"HG.CHECK", "d", "COST", "3", "ENTRIES", "1", "user", "ann"}), HasSubstr(never));
  EXPECT_THAT(Ask({"HG.CHECK", "d", "ENTRIES", "1", "none", "x"}), HasSubstr(never));
  client_.Send("HELLO 3\r\n");
  EXPECT_THAT(client_.Ask({"HG.CHECK", "d", "ENTRIES", "1", "none", "x"}),
              HasSubstr("retry_after_ms\r\n_\r\n"));
}

TEST_F(RuleVerbsTest, ARequestWithoutAMatchingRulePassesWithoutFigures) {
  for (const std::string_view domain : {"d", "elsewhere"}) {
    EXPECT_EQ(
        Ask({"HG.CHECK", domain, "ENTRIES", "1", "page", "x"}),
        R"(["allowed", 1, "decisions", [["allowed", 1, "limit", nil, "remaining", nil, "retry_after_ms", 0, )"
        R"("reset_after_ms", 0, "wait_ms", 0, "rule", nil, "shadow", 0]]])");
  }
}

TEST_F(RuleVerbsTest, EachEntriesIsADescriptorAndTheCostIsForAll) {
  const std::string reply =
      Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann", "ENTRIES", "1", "user",
           "bob", "ENTRIES", "2", "user", "ann", "path", "/"});
  EXPECT_EQ(
      reply,
      R"(["allowed", 1, "decisions", [)"
      R"(["allowed", 1, "limit", 2, "remaining", 0, "retry_after_ms", 0, "reset_after_ms", 10000, "wait_ms", 0, )"
      R"("rule", "user", "shadow", 0], )"
      R"(["allowed", 1, "limit", 2, "remaining", 0, "retry_after_ms", 0, "reset_after_ms", 10000, "wait_ms", 0, )"
      R"("rule", "user", "shadow", 0], )"
      R"(["allowed", 1, "limit", nil, "remaining", nil, "retry_after_ms", 0, "reset_after_ms", 0, "wait_ms", 0, )"
      R"("rule", nil, "shadow", 0]]])");
}

TEST_F(RuleVerbsTest, ARuleInShadowLetsThroughWhatItDenies) {
  const rule::read::RuleFile file{
      .name = "shadow.yaml",
      .text =
          "domain: s\n"
          "descriptors:\n"
          "  - key: user\n"
          "    shadow_mode: true\n"
          "    rate_limit: {algorithm: token_bucket, period: 10s, requests_per_unit: 1}\n"};
  const rule::read::LoadResult loaded = rule::read::LoadRules({&file, 1});
  ASSERT_TRUE(loaded.ok()) << loaded.problems.front().message;
  ASSERT_TRUE(world_.limiter.OnRules(loaded.rules, client_.now).ok());
  Ask({"HG.CHECK", "s", "ENTRIES", "1", "user", "ann"});
  EXPECT_EQ(
      Ask({"HG.CHECK", "s", "ENTRIES", "1", "user", "ann"}),
      R"(["allowed", 1, "decisions", [["allowed", 1, "limit", 1, "remaining", 0, "retry_after_ms", 10000, )"
      R"("reset_after_ms", 10000, "wait_ms", 0, "rule", "user", "shadow", 1]]])");
}

TEST_F(RuleVerbsTest, AQueueSaysHowLongToWait) {
  Ask({"HG.CHECK", "d", "ENTRIES", "1", "queue", "q"});
  EXPECT_THAT(Ask({"HG.CHECK", "d", "ENTRIES", "1", "queue", "q"}),
              HasSubstr(R"("wait_ms", 1000)"));
}

TEST_F(RuleVerbsTest, APeekTakesNothing) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Ask({"HG.PEEK", "d", "ENTRIES", "1", "user", "ann"}),
                HasSubstr(R"("remaining", 2)"));
  }
  EXPECT_THAT(Ask({"HG.PEEK", "d", "COST", "3", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("allowed", 0)"));
  EXPECT_THAT(Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("remaining", 0)"));
}

TEST_F(RuleVerbsTest, ARefundGivesBackAtMostWhatWasTaken) {
  Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"});
  EXPECT_THAT(Ask({"HG.REFUND", "d", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("remaining", 1)"));
  EXPECT_THAT(Ask({"HG.REFUND", "d", "COST", "9", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("remaining", 2)"));
}

TEST_F(RuleVerbsTest, ARefundWithAnIdCountsOnce) {
  Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Ask({"HG.REFUND", "d", "ID", "a", "COST", "1", "ENTRIES", "1", "user", "ann"}),
                HasSubstr(R"("remaining", 1)"));
  }
  EXPECT_THAT(Ask({"HG.CHECK", "d", "ID", "a", "ENTRIES", "1", "user", "ann"}),
              HasSubstr("syntax error: ENTRIES was expected, not 'ID'"));
}

TEST_F(RuleVerbsTest, AResetMakesABucketAsIfNeverUsed) {
  Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"});
  EXPECT_THAT(Ask({"HG.RESET", "d", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("remaining", 2)"));
  EXPECT_THAT(Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", "ann"}),
              HasSubstr(R"("allowed", 1)"));
}

TEST_F(RuleVerbsTest, KeysAndValuesAreAnyBytes) {
  const std::string_view nul("a\0b", 3);
  Ask({"HG.CHECK", "d", "COST", "2", "ENTRIES", "1", "user", nul});
  EXPECT_THAT(Ask({"HG.PEEK", "d", "ENTRIES", "1", "user", nul}), HasSubstr(R"("remaining", 0)"));
  EXPECT_THAT(Ask({"HG.PEEK", "d", "ENTRIES", "1", "user", "a"}), HasSubstr(R"("remaining", 2)"));
  // In the place of a value, a word of the grammar is an ordinary value.
  EXPECT_THAT(Ask({"HG.CHECK", "d", "ENTRIES", "1", "user", "ENTRIES"}),
              HasSubstr(R"("rule", "user")"));
}

TEST_F(RuleVerbsTest, BadArgumentsGetTheirExactErrorAndTakeNothing) {
  struct Case {
    std::vector<std::string_view> words;
    std::string error;
  };
  const std::string no_count = "ENTRIES needs a number of entries from 1 to 32, not ";
  const Case cases[] = {
      {{"HG.CHECK"}, "wrong number of arguments for 'hg.check' command"},
      {{"HG.CHECK", "d"}, "wrong number of arguments for 'hg.check' command"},
      {{"HG.PEEK", "d", "ENTRIES", "1", "user"}, "wrong number of arguments for 'hg.peek' command"},
      {{"HG.CHECK", "", "ENTRIES", "1", "user", "ann"}, "rate limit domain must not be empty"},
      {{"HG.CHECK", "d", "user", "ann", "x", "y"},
       "syntax error: ENTRIES was expected, not 'user'"},
      {{"HG.CHECK", "d", "ENTRIES", "1", "user", "ann", "more"},
       "syntax error: ENTRIES was expected, not 'more'"},
      {{"HG.CHECK", "d", "ENTRIES", "1", "user", "ann", "COST", "2"},
       "syntax error: ENTRIES was expected, not 'COST'"},
      {{"HG.CHECK", "d", "COST", "2", "COST", "2"},
       "syntax error: ENTRIES was expected, not 'COST'"},
      {{"HG.CHECK", "d", "ENTRIES", "0", "user", "ann"}, no_count + "'0'"},
      {{"HG.CHECK", "d", "ENTRIES", "-1", "user", "ann"}, no_count + "'-1'"},
      {{"HG.CHECK", "d", "ENTRIES", "33", "user", "ann"}, no_count + "'33'"},
      {{"HG.CHECK", "d", "ENTRIES", "x", "user", "ann"}, no_count + "'x'"},
      {{"HG.CHECK", "d", "ENTRIES", "99999999999999999999", "user", "ann"},
       no_count + "'99999999999999999999'"},
      {{"HG.CHECK", "d", "ENTRIES", "1", "user", "ann", "ENTRIES"}, no_count + "''"},
      {{"HG.CHECK", "d", "ENTRIES", "2", "user", "ann"},
       "ENTRIES 2 needs 4 keys and values, but only 2 follow"},
      {{"HG.CHECK", "d", "ENTRIES", "2", "user", "ann", "k"},
       "ENTRIES 2 needs 4 keys and values, but only 3 follow"},
      {{"HG.CHECK", "d", "COST", "x", "ENTRIES", "1", "user", "ann"},
       "COST must be a whole number from 0 to 9223372036854775807, not 'x'"},
      {{"HG.CHECK", "d", "COST", "-1", "ENTRIES", "1", "user", "a"},
       "COST must be a whole number from 0 to 9223372036854775807, not '-1'"},
      {{"HG.CHECK", "d", "COST", "9223372036854775808", "ENTRIES", "1", "user", "a"},
       "COST must be a whole number from 0 to 9223372036854775807, not '9223372036854775808'"},
      {{"HG.RESET", "d", "COST", "1", "ENTRIES", "1", "user", "a"},
       "HG.RESET takes no COST: it gives everything back"},
      {{"HG.REFUND", "d", "ENTRIES", "1", "queue", "q"},
       "rule queue: a queue takes nothing back: its requests have been promised their turn"},
  };
  for (const Case& c : cases) {
    std::string bytes;
    wire::RespWriter writer(bytes, wire::RespVersion::k2);
    writer.Array(c.words.size());
    for (const std::string_view word : c.words) writer.Bulk(word);
    EXPECT_EQ(client_.Send(bytes), "-ERR " + c.error + "\r\n");
  }
  EXPECT_EQ(world_.store.stats().buckets, 0u);
}

TEST_F(RuleVerbsTest, AsManyDescriptorsAndEntriesAsTheRulesAllow) {
  const auto ask = [&](size_t descriptors) {
    std::string bytes;
    wire::RespWriter writer(bytes, wire::RespVersion::k2);
    writer.Array(2 + descriptors * (2 + 2 * rule::kEntriesMax));
    writer.Bulk("HG.CHECK");
    writer.Bulk("d");
    for (size_t d = 0; d < descriptors; ++d) {
      writer.Bulk("ENTRIES");
      writer.Bulk(std::to_string(rule::kEntriesMax));
      for (size_t e = 0; e < 2 * rule::kEntriesMax; ++e)
        writer.Bulk("some key or value of a usual length");
    }
    return client_.Send(bytes);
  };
  EXPECT_THAT(ask(rule::kDescriptorsMax),
              ::testing::StartsWith("*4\r\n$7\r\nallowed\r\n:1\r\n$9\r\ndecisions\r\n*64\r\n"));
  EXPECT_EQ(ask(rule::kDescriptorsMax + 1), "-ERR more than 64 descriptors\r\n");
}

TEST(RuleVerbs, WithoutRulesACheckIsAnError) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Ask({"HG.CHECK", "d", "ENTRIES", "1", "user", "ann"}),
            "-ERR no rate limit configuration loaded\r\n");
}

TEST_F(RuleVerbsTest, AnEmptyKeyIsRefused) {
  for (const std::string_view verb : {"HG.CHECK", "HG.PEEK", "HG.REFUND", "HG.RESET"}) {
    EXPECT_EQ(client_.Ask({verb, "d", "ENTRIES", "1", "", "ann"}),
              "-ERR a key of ENTRIES must not be empty\r\n")
        << verb;
  }
}

TEST_F(RuleVerbsTest, AChangeThatFindsNoRuleIsAnError) {
  for (const std::string_view verb : {"HG.REFUND", "HG.RESET"}) {
    EXPECT_EQ(client_.Ask({verb, "d", "ENTRIES", "1", "page", "x"}),
              "-ERR no rule applies to any of the descriptors: nothing was changed\r\n")
        << verb;
  }
}

}  // namespace rule_verbs_test
}  // namespace headgate::front::resp
