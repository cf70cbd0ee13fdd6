// CL.THROTTLE according to docs/reference/redis-protocol.md: all expected replies are derived from
// that specification.
#include "headgate/front/resp/throttle.h"

#include <fmt/format.h>

#include <limits>

#include "headgate/front/resp/conversation.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace throttle_test {

using std::chrono::milliseconds;

std::string Readable(std::string_view reply) {
  wire::RespReader reader;
  size_t consumed = 0;
  return reader.Read(reply, consumed) == wire::RespReader::Step::kValue && consumed == reply.size()
             ? reader.value().ToString()
             : "not one reply: " + std::string(reply);
}

// One client whose clock starts at 0 ms.
class Throttle {
 public:
  std::string operator()(std::initializer_list<std::string_view> arguments) {
    std::vector<std::string_view> words{"CL.THROTTLE"};
    words.insert(words.end(), arguments);
    std::string bytes;
    wire::RespWriter writer(bytes, wire::RespVersion::k2);
    writer.Array(words.size());
    for (const std::string_view word : words) writer.Bulk(word);
    return Readable(client_.Send(bytes));
  }
  Throttle& At(milliseconds t) {
    client_.now = start_ + t;
    return *this;
  }
  Throttle& AtNanos(int64_t ns) {
    client_.now = start_ + base::Duration(ns);
    return *this;
  }

 private:
  World world_;
  Conversation client_{world_};
  const base::Instant start_ = client_.now;
};

// ---- redis-cell's own expectations

TEST(ClThrottle, AnswersTheGoldenVectorsOfRedisCell) {
  struct Step {
    int64_t at_ms;
    std::string_view quantity;
    std::string_view reply;
  };
  const Step steps[] = {
      {0, "6", "[1, 5, 5, -1, 0]"},
      {0, "1", "[0, 5, 4, -1, 1]"},
      {0, "1", "[0, 5, 3, -1, 2]"},
      {0, "1", "[0, 5, 2, -1, 3]"},
      {0, "1", "[0, 5, 1, -1, 4]"},
      {0, "1", "[0, 5, 0, -1, 5]"},
      {0, "1", "[1, 5, 0, 1, 5]"},
      {3000, "1", "[0, 5, 2, -1, 3]"},
      {3100, "1", "[0, 5, 1, -1, 4]"},
      {4000, "1", "[0, 5, 1, -1, 4]"},
      {8000, "1", "[0, 5, 4, -1, 1]"},
      {9500, "1", "[0, 5, 4, -1, 1]"},
      {9500, "0", "[0, 5, 4, -1, 1]"},
      {9500, "2", "[0, 5, 2, -1, 3]"},
      {9500, "5", "[1, 5, 2, 3, 3]"},
      // The sixteenth vector of throttled: a bucket that is full again, and a request that never
      // fits.
      {15000, "6", "[1, 5, 5, -1, 0]"},
  };
  Throttle throttle;
  for (const Step& step : steps) {
    EXPECT_EQ(throttle.At(milliseconds(step.at_ms))({"foo", "4", "1", "1", step.quantity}),
              step.reply)
        << step.at_ms << " ms, quantity " << step.quantity;
  }
}

TEST(ClThrottle, AnswersTheExampleOfItsReadme) {
  EXPECT_EQ(Throttle()({"user123", "15", "30", "60"}), "[0, 16, 15, -1, 2]");
}

TEST(ClThrottle, AnswersTheEndToEndTablesOfRedisCell) {
  Throttle k;
  EXPECT_EQ(k({"k", "0", "1", "2", "1"}), "[0, 1, 0, -1, 2]");
  EXPECT_EQ(k({"k", "0", "1", "2", "1"}), "[1, 1, 0, 2, 2]");
  EXPECT_EQ(k.At(milliseconds(2000))({"k", "0", "1", "2", "1"}), "[0, 1, 0, -1, 2]");

  Throttle two;
  EXPECT_EQ(two({"k", "0", "2", "1"}), "[0, 1, 0, -1, 1]");
  EXPECT_EQ(two.At(milliseconds(100))({"k", "0", "2", "1"}), "[1, 1, 0, 1, 1]");
  EXPECT_EQ(two.At(milliseconds(499))({"k", "0", "2", "1"}), "[1, 1, 0, 1, 1]");
  EXPECT_EQ(two.At(milliseconds(500))({"k", "0", "2", "1"}), "[0, 1, 0, -1, 1]");

  Throttle all;
  EXPECT_EQ(all({"k", "4", "1", "1", "5"}), "[0, 5, 0, -1, 5]");
  EXPECT_EQ(all({"k", "4", "1", "1", "5"}), "[1, 5, 0, 5, 5]");
  EXPECT_EQ(all.At(milliseconds(4999))({"k", "4", "1", "1", "5"}), "[1, 5, 4, 1, 1]");
  EXPECT_EQ(all.At(milliseconds(5000))({"k", "4", "1", "1", "5"}), "[0, 5, 0, -1, 5]");
}

// ---- The edge cases where servers differ

TEST(ClThrottle, ARequestThatNeverFitsIsNotToldToRetry) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "4", "1", "1", "6"}), "[1, 5, 5, -1, 0]");
  EXPECT_EQ(throttle({"k", "4", "1", "1", "2"}), "[0, 5, 3, -1, 2]");
  EXPECT_EQ(throttle({"k", "4", "1", "1", "6"}), "[1, 5, 3, -1, 2]");
  EXPECT_EQ(throttle({"k", "4", "1", "1", "9223372036854775807"}), "[1, 5, 3, -1, 2]");
}

TEST(ClThrottle, QuantityZeroLooksAndTakesNothing) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "4", "1", "1", "0"}), "[0, 5, 5, -1, 0]");
  EXPECT_EQ(throttle({"k", "4", "1", "1", "5"}), "[0, 5, 0, -1, 5]");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(throttle({"k", "4", "1", "1", "0"}), "[0, 5, 0, -1, 5]");
}

TEST(ClThrottle, RetryAfterIsNeverZeroForADenial) {
  Throttle throttle;  // One token every 100 µs.
  EXPECT_EQ(throttle({"k", "0", "10000", "1"}), "[0, 1, 0, -1, 1]");
  EXPECT_EQ(throttle({"k", "0", "10000", "1"}), "[1, 1, 0, 1, 1]");
}

TEST(ClThrottle, WholeSecondsStayWhole) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "0", "1", "10"}), "[0, 1, 0, -1, 10]");
  EXPECT_EQ(throttle({"k", "0", "1", "10"}), "[1, 1, 0, 10, 10]");
  EXPECT_EQ(throttle.AtNanos(1)({"k", "0", "1", "10"}), "[1, 1, 0, 10, 10]");
  EXPECT_EQ(throttle.At(milliseconds(1))({"k", "0", "1", "10"}), "[1, 1, 0, 10, 10]");
  EXPECT_EQ(throttle.At(milliseconds(1000))({"k", "0", "1", "10"}), "[1, 1, 0, 9, 9]");
}

TEST(ClThrottle, AHundredAndSixtySixThousandNanosecondsAreExact) {
  // redis-cell answers 6024 remaining of 6001.
  EXPECT_EQ(Throttle()({"k", "6000", "6000", "1"}), "[0, 6001, 6000, -1, 1]");
}

TEST(ClThrottle, AnIntervalBelowAMicrosecondIsExact) {
  // redis-cell answers 9223372036854775807 remaining.
  EXPECT_EQ(Throttle()({"k", "10", "2000000", "1"}), "[0, 11, 10, -1, 1]");
}

TEST(ClThrottle, AnIntervalBelowANanosecondIsNoError) {
  Throttle throttle;  // Two tokens every nanosecond.
  EXPECT_EQ(throttle({"k", "3", "2000000000", "1", "4"}), "[0, 4, 0, -1, 1]");
  EXPECT_EQ(throttle({"k", "3", "2000000000", "1", "4"}), "[1, 4, 0, 1, 1]");
  EXPECT_EQ(throttle.AtNanos(1)({"k", "3", "2000000000", "1", "2"}), "[0, 4, 0, -1, 1]");
}

TEST(ClThrottle, SevenPerMinuteLosesNoNanosecond) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "6", "7", "60", "7"}), "[0, 7, 0, -1, 60]");
  EXPECT_EQ(throttle.AtNanos(59'999'999'999)({"k", "6", "7", "60", "7"}), "[1, 7, 6, 1, 1]");
  EXPECT_EQ(throttle.AtNanos(60'000'000'000)({"k", "6", "7", "60", "7"}), "[0, 7, 0, -1, 60]");
}

TEST(ClThrottle, KeysAreAnyBytesAndTellApart) {
  Throttle throttle;
  const std::string_view nul("a\0b", 3), other("a\0c", 3);
  EXPECT_EQ(throttle({nul, "0", "1", "60"}), "[0, 1, 0, -1, 60]");
  EXPECT_EQ(throttle({other, "0", "1", "60"}), "[0, 1, 0, -1, 60]");
  EXPECT_EQ(throttle({"a", "0", "1", "60"}), "[0, 1, 0, -1, 60]");
  EXPECT_EQ(throttle({"\xff\xfe\r\n", "0", "1", "60"}), "[0, 1, 0, -1, 60]");
  EXPECT_EQ(throttle({"", "0", "1", "60"}), "[0, 1, 0, -1, 60]");
  EXPECT_EQ(throttle({nul, "0", "1", "60"}), "[1, 1, 0, 60, 60]");
  EXPECT_EQ(throttle({"\xff\xfe\r\n", "0", "1", "60"}), "[1, 1, 0, 60, 60]");
}

TEST(ClThrottle, NumbersAreReadAsRustReadsThem) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "+15", "0030", "00000000000000000000000060", "-0"}),
            "[0, 16, 16, -1, 0]");
  EXPECT_EQ(throttle({"k", "-0", "1", "60", "+1"}), "[0, 1, 0, -1, 60]");
}

TEST(ClThrottle, TheLargestNumbersAreAnsweredOrRefusedNeverWrapped) {
  Throttle throttle;
  // 2^63 − 1 tokens of 1/4 ns each fill in 2^61 ns, which is 73 years.
  EXPECT_EQ(throttle({"k", "9223372036854775806", "4000000000", "1", "9223372036854775807"}),
            "[0, 9223372036854775807, 0, -1, 2305843010]");
  EXPECT_EQ(throttle({"k", "9223372036854775806", "4000000000", "1"}),
            "[1, 9223372036854775807, 0, 1, 2305843010]");
}

TEST(ClThrottle, MoreThanFourBillionRequestsPerPeriodAreDecided) {
  // The same replies as redis-cell's, except for a reset_after of less than a millisecond, which
  // redis-cell rounds down to 0.
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "15", "4294967297", "60"}), "[0, 16, 15, -1, 1]");
  EXPECT_EQ(throttle({"slow", "4", "5000000001", "9000000000", "5"}), "[0, 5, 0, -1, 9]");
  EXPECT_EQ(throttle({"slow", "4", "5000000001", "9000000000"}), "[1, 5, 0, 2, 9]");
  EXPECT_EQ(throttle.At(milliseconds(2000))({"slow", "4", "5000000001", "9000000000"}),
            "[0, 5, 0, -1, 9]");
  // redis-cell: an error, since a token takes less than a nanosecond.
  EXPECT_EQ(throttle({"fast", "15", "4294967297", "1"}), "[0, 16, 15, -1, 1]");
}

TEST(ClThrottle, PeriodsOfMoreThan146YearsAreDecidedIfTheBucketFillsSooner) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "15", "30", "4611686019"}), "[0, 16, 15, -1, 153722868]");
  EXPECT_EQ(throttle({"k", "0", "3", "9000000000"}), "[0, 1, 0, -1, 3000000000]");
  EXPECT_EQ(throttle({"k", "0", "3", "9000000000"}), "[1, 1, 0, 3000000000, 3000000000]");
  EXPECT_EQ(throttle({"all", "4", "1000000", "10000000000", "5"}), "[0, 5, 0, -1, 50000]");
}

TEST(ClThrottle, RaisingALimitLetsTheBucketRefillAtTheNewRateAtOnce) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "9", "10", "60", "10"}), "[0, 10, 0, -1, 60]");
  // A new limit creates no tokens: 100 new tokens take 60 s. redis-cell denies for as long as the
  // old limit would have.
  EXPECT_EQ(throttle({"k", "99", "100", "60"}), "[1, 100, 0, 1, 60]");
  EXPECT_EQ(throttle.At(milliseconds(600))({"k", "99", "100", "60"}), "[0, 100, 0, -1, 60]");
}

TEST(ClThrottle, LoweringALimitKeepsTheTokensUpToTheNewBurst) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "9", "10", "60", "10"}), "[0, 10, 0, -1, 60]");
  // The bucket is empty, and gets a token every 6 s. redis-cell makes this client wait for 54 s.
  EXPECT_EQ(throttle({"k", "1", "10", "60"}), "[1, 2, 0, 6, 12]");
  Throttle full;
  EXPECT_EQ(full({"k", "9", "10", "60"}), "[0, 10, 9, -1, 6]");
  EXPECT_EQ(full({"k", "1", "10", "60"}), "[0, 2, 1, -1, 6]");
  // Back to the first limit: the tokens that were cut off do not return at once.
  EXPECT_EQ(full({"k", "9", "10", "60", "0"}), "[0, 10, 1, -1, 54]");
}

// ---- Bad arguments

TEST(ClThrottle, BadArgumentsGetTheirExactError) {
  const std::string usage =
      "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
  const std::string zero = "Zero rates are not supported";
  const std::string too_large_burst = "max_burst must be less than 9223372036854775807";
  const std::string too_fast =
      "the rate is above 4096 requests per nanosecond and cannot be reduced to at most 4294967295 "
      "requests per period";
  const std::string too_slow =
      "burst * period / requests, the time to fill the bucket, is longer than 146 years";
  struct Case {
    std::vector<std::string_view> arguments;
    std::string error;
  };
  const std::string long_text(1000, 'x');
  const Case cases[] = {
      // Missing and extra.
      {{}, usage},
      {{"k"}, usage},
      {{"k", "15", "30"}, usage},
      {{"k", "15", "30", "60", "1", "1"}, usage},
      // Not numbers, in each place; the first of several is named.
      {{"k", "abc", "30", "60", "1"}, "Couldn't parse as integer: abc"},
      {{"k", "15", "abc", "60", "1"}, "Couldn't parse as integer: abc"},
      {{"k", "15", "30", "abc", "1"}, "Couldn't parse as integer: abc"},
      {{"k", "15", "30", "60", "abc"}, "Couldn't parse as integer: abc"},
      {{"k", "a", "b", "c", "d"}, "Couldn't parse as integer: a"},
      {{"k", "", "30", "60"}, "Couldn't parse as integer: "},
      {{"k", "1.0", "30", "60"}, "Couldn't parse as integer: 1.0"},
      {{"k", "1e3", "30", "60"}, "Couldn't parse as integer: 1e3"},
      {{"k", " 1", "30", "60"}, "Couldn't parse as integer:  1"},
      {{"k", "1 ", "30", "60"}, "Couldn't parse as integer: 1 "},
      {{"k", "0x1", "30", "60"}, "Couldn't parse as integer: 0x1"},
      {{"k", "-", "30", "60"}, "Couldn't parse as integer: -"},
      {{"k", "+", "30", "60"}, "Couldn't parse as integer: +"},
      {{"k", "--1", "30", "60"}, "Couldn't parse as integer: --1"},
      {{"k", "+-1", "30", "60"}, "Couldn't parse as integer: +-1"},
      {{"k", "1\r\n:2", "30", "60"}, "Couldn't parse as integer: 1  :2"},
      {{"k", "9223372036854775808", "30", "60"}, "Couldn't parse as integer: 9223372036854775808"},
      {{"k", "15", "30", "60", "-9223372036854775809"},
       "Couldn't parse as integer: -9223372036854775809"},
      {{"k", "15", "30", "99999999999999999999999"},
       "Couldn't parse as integer: 99999999999999999999999"},
      {{"k", long_text, "30", "60"}, "Couldn't parse as integer: " + long_text.substr(0, 128)},
      // Zero.
      {{"k", "15", "0", "60"}, zero},
      {{"k", "15", "30", "0"}, zero},
      {{"k", "0", "0", "60", "1"}, zero},
      {{"k", "0", "0", "0", "0"}, zero},
      // Negative.
      {{"k", "-1", "30", "60"}, "max_burst must not be negative: -1"},
      {{"k", "15", "-30", "60"}, "count per period must not be negative: -30"},
      {{"k", "15", "30", "-60"}, "period must not be negative: -60"},
      {{"k", "15", "-30", "-60"}, "count per period must not be negative: -30"},
      {{"k", "15", "30", "60", "-1"}, "quantity must not be negative: -1"},
      {{"k", "15", "30", "60", "-9223372036854775808"},
       "quantity must not be negative: -9223372036854775808"},
      // Huge.
      {{"k", "9223372036854775807", "30", "60"}, too_large_burst},
      {{"k", "9223372036854775806", "30", "60"}, too_slow},
      {{"k", "15", "30", "9223372036854775807"}, too_slow},
      {{"k", "15", "30", "1000000000000"}, too_slow},
      {{"k", "0", "1", "4611686019"}, too_slow},
      {{"k", "1000000000", "1", "1000000000"}, too_slow},
      {{"k", "15", "9223372036854775807", "1"}, too_fast},
  };
  for (const Case& c : cases) {
    World world;
    Conversation client(world);
    std::string bytes;
    wire::RespWriter writer(bytes, wire::RespVersion::k2);
    writer.Array(1 + c.arguments.size());
    writer.Bulk("cl.throttle");
    for (const std::string_view argument : c.arguments) writer.Bulk(argument);
    EXPECT_EQ(client.Send(bytes), "-Cell error: Store error: " + c.error + "\r\n")
        << ::testing::PrintToString(c.arguments);
    EXPECT_FALSE(client.progress.close);
    EXPECT_EQ(world.context.counters.errors.value(), 1u);
    EXPECT_EQ(world.store.stats().buckets, 0u);
  }
}

TEST(ClThrottle, ANegativeQuantityIsRefusedForAKnownLimitToo) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "15", "30", "60"}), "[0, 16, 15, -1, 2]");
  EXPECT_EQ(throttle({"k", "15", "30", "60", "-1"}),
            "-Cell error: Store error: quantity must not be negative: -1");
  EXPECT_EQ(throttle({"k", "15", "30", "60", "0"}), "[0, 16, 15, -1, 2]");
}

TEST(ClThrottle, ParsesTheBordersOfSixtyFourBits) {
  EXPECT_EQ(ParseInteger("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(ParseInteger("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseInteger("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseInteger("-9223372036854775809"), std::nullopt);
  EXPECT_EQ(ParseInteger("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseInteger("-999999999999999999"), -999999999999999999);
  EXPECT_EQ(ParseInteger("+000000000000000000000000000000000000007"), 7);
}

// The second command of each pair finds its limit by the text of the first.
TEST(ClThrottle, ALimitThatWasSeenBeforeIsReadAsStrictly) {
  Throttle throttle;
  EXPECT_EQ(throttle({"k", "5", "30", "60"}), "[0, 6, 5, -1, 2]");
  EXPECT_EQ(throttle({"k", "05", "30", "60"}), "[0, 6, 4, -1, 4]");
  EXPECT_EQ(throttle({"k", "+5", "30", "60"}), "[0, 6, 3, -1, 6]");
  EXPECT_EQ(throttle({"k", "+5", "30", "60"}), "[0, 6, 2, -1, 8]");
  for (const std::string_view text : {"000000+5", "0x5", " 5", "5 ", "", "-0x5"}) {
    EXPECT_EQ(throttle({"k", text, "30", "60"}),
              "-Cell error: Store error: Couldn't parse as integer: " + std::string(text));
  }
  EXPECT_EQ(throttle({"k", "5", "30", "60", "x"}),
            "-Cell error: Store error: Couldn't parse as integer: x");
  EXPECT_EQ(throttle({"k", "5", "30", "60", "2"}), "[0, 6, 0, -1, 12]");
}

// ---- Batches

TEST(ClThrottle, CommandsOfOneReadAreAnsweredInTheirOrder) {
  World world;
  Conversation client(world);
  std::string bytes;
  std::string expected;
  // More than one batch, over several keys and limits, mixed with other commands and errors.
  for (int i = 0; i < 300; ++i) {
    if (i % 70 == 69) {
      bytes += Conversation::Bytes({"PING"});
      expected += "+PONG\r\n";
    } else if (i % 70 == 35) {
      bytes += Conversation::Bytes({"CL.THROTTLE", "k", "x", "1", "1"});
      expected += "-Cell error: Store error: Couldn't parse as integer: x\r\n";
    } else {
      bytes += Conversation::Bytes({"CL.THROTTLE", std::to_string(i), std::to_string(i), "1", "1"});
      expected += "*5\r\n:0\r\n:" + std::to_string(i + 1) + "\r\n:" + std::to_string(i) +
                  "\r\n:-1\r\n:1\r\n";
    }
  }
  EXPECT_EQ(client.Send(bytes), expected);
  EXPECT_EQ(world.context.counters.commands.value(), 300u);
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kAllowed), 300u - 4 - 4);
}

TEST(ClThrottle, OneKeyInOneBatchCountsEachOfItsCommands) {
  World world;
  Conversation client(world);
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += Conversation::Bytes({"CL.THROTTLE", "k", "1", "1", "1"});
  EXPECT_EQ(client.Send(bytes),
            "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1\r\n"
            "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:2\r\n"
            "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:2\r\n"
            "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:2\r\n"
            "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:2\r\n");
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kAllowed), 2u);
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kDenied), 3u);
}

TEST(ClThrottle, TellsKeysToAnObserverThatHearsThem) {
  World world;
  Conversation client(world);
  client.Ask({"CL.THROTTLE", "unheard", "1", "1", "1"});
  EXPECT_TRUE(world.own_limits.keys.empty());
  world.own_limits.HearOwnKeys(true);
  client.Send(Conversation::Bytes({"CL.THROTTLE", "a", "1", "1", "1", "2"}) +
              Conversation::Bytes({"CL.THROTTLE", "b", "0", "1", "1", "0"}) +
              // Another limit: the collected commands may be decided first.
              Conversation::Bytes({"GCRA", "a", "1", "1", "1"}) +
              Conversation::Bytes({"CL.THROTTLE", "c", "x", "1", "1"}));
  EXPECT_EQ(world.own_limits.keys,
            (std::vector<std::string>{"a allowed 2", "b allowed 0", "a denied 1"}));
  world.own_limits.HearOwnKeys(false);
  client.Ask({"CL.THROTTLE", "a", "1", "1", "1"});
  EXPECT_EQ(world.own_limits.keys.size(), 3u);
}

// Limits that share a cache slot replace each other in the middle of a batch.
TEST(ClThrottle, MoreLimitsThanTheCacheHoldsAreDecidedRight) {
  World world;
  Conversation client(world);
  for (int round = 0; round < 2; ++round) {
    std::string bytes;
    std::string expected;
    for (int i = 0; i < 5000; ++i) {
      const std::string burst = std::to_string(10 + i);
      bytes += Conversation::Bytes({"CL.THROTTLE", "look", burst, "1", "1", "0"});
      expected += "*5\r\n:0\r\n:" + std::to_string(11 + i) + "\r\n:" + std::to_string(11 + i) +
                  "\r\n:-1\r\n:0\r\n";
    }
    EXPECT_EQ(client.Send(bytes), expected);
  }
}

TEST(ClThrottle, MoreLimitsThanTheStoreHoldsMakeWayForEachOther) {
  store::MemoryStore store(store::MemoryOptions{.max_buckets = 64, .max_limits = 2});
  limiter::Limiter limiter(store, nullptr);
  limiter::Checker checker(limiter);
  access::Access access;
  Context context({.checker = checker, .access = access, .version = "1"});
  RespSession session(context, {});
  std::string output;
  for (int burst = 1; burst <= 5000; ++burst) {
    output.clear();
    session.OnBytes(fmt::format("CL.THROTTLE k{} {} 1 1\n", burst, burst), output,
                    base::Instant::FromNanos(0));
    ASSERT_EQ(output, fmt::format("*5\r\n:0\r\n:{}\r\n:{}\r\n:-1\r\n:1\r\n", burst + 1, burst));
  }
  EXPECT_GT(store.stats().client_limits_forgotten, 3000u);
}

}  // namespace throttle_test
}  // namespace headgate::front::resp
