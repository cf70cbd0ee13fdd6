#include "headgate/front/resp/throttle_group.h"

#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace throttle_group_test {

// A bucket of `burst` + 1 that regains one token in 1000 s.
std::string Bucket(std::string_view key, int burst, int quantity) {
  return fmt::format(" {} {} 1 1000 {}", key, burst, quantity);
}

std::string Five(int limited, int limit, int remaining, int retry, int reset) {
  return fmt::format("*5\r\n:{}\r\n:{}\r\n:{}\r\n:{}\r\n:{}\r\n", limited, limit, remaining, retry,
                     reset);
}

TEST(HgCheckM, TakesFromAllOrNone) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + Bucket("b", 9, 4) + "\r\n"),
            "*3\r\n:0\r\n" + Five(0, 2, 1, -1, 1000) + Five(0, 10, 6, -1, 4000));
  // The second does not fit, so the first, which would, loses nothing.
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + Bucket("b", 9, 7) + "\r\n"),
            "*3\r\n:1\r\n" + Five(0, 2, 1, -1, 1000) + Five(1, 10, 6, 1000, 4000));
  EXPECT_EQ(client.Send("CL.THROTTLE a 1 1 1000\r\n"), Five(0, 2, 0, -1, 2000));
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("b", 9, 6) + Bucket("a", 1, 1) + "\r\n"),
            "*3\r\n:1\r\n" + Five(0, 10, 6, -1, 4000) + Five(1, 2, 0, 1000, 2000));
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kDenied), 2u);
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kAllowed), 5u);
}

TEST(HgCheckM, InPassthroughItIsNeverLimited) {
  World world;
  Conversation client(world);
  world.limiter.SetPassthrough(true);
  for (int i = 0; i < 2; ++i) client.Send("CL.THROTTLE a 0 1 1000\r\n");
  EXPECT_EQ(client.Send("CL.THROTTLE a 0 1 1000\r\n"), Five(0, 1, 0, -1, 1000));
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 0, 1) + "\r\n"),
            "*2\r\n:0\r\n" + Five(0, 1, 0, -1, 1000));
  EXPECT_EQ(world.own_limits.of(limiter::Outcome::kDenied), 3u);
  world.limiter.SetPassthrough(false);
  EXPECT_EQ(client.Send("CL.THROTTLE a 0 1 1000\r\n"), Five(1, 1, 0, 1000, 1000));
}

TEST(HgCheckM, ASecondTakeFromTheSameKeyCounts) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + Bucket("a", 1, 2) + "\r\n").substr(0, 8),
            "*3\r\n:1\r\n");
  EXPECT_EQ(client.Send("CL.THROTTLE a 1 1 1000 0\r\n"), Five(0, 2, 2, -1, 0));
}

TEST(HgCheckM, ANeverFittingQuantityIsNeverARetry) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 3) + "\r\n"),
            "*2\r\n:1\r\n" + Five(1, 2, 2, -1, 0));
}

TEST(HgCheckM, ErrorsTakeNothing) {
  World world;
  Conversation client(world);
  const std::string syntax =
      "-ERR syntax error: HG.CHECKM key max_burst count period quantity [key max_burst count "
      "period quantity ...]\r\n";
  EXPECT_EQ(client.Send("HG.CHECKM a 1 1 1000\r\n"),
            "-ERR wrong number of arguments for 'hg.checkm' command\r\n");
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + " b\r\n"), syntax);
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + " b x 1 1 1\r\n"),
            "-ERR Couldn't parse as integer: x\r\n");
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + " b 1 0 1 1\r\n"),
            "-ERR Zero rates are not supported\r\n");
  EXPECT_EQ(client.Send("HG.CHECKM" + Bucket("a", 1, 1) + Bucket("b", 1, 0) + "\r\n"),
            "-ERR quantity must be at least 1\r\n");
  std::string many = "HG.CHECKM";
  for (int i = 0; i < 32; ++i) many += Bucket("a" + std::to_string(i), 1, 1);
  EXPECT_EQ(client.Send(many + Bucket("z", 1, 1) + "\r\n"), "-ERR more than 32 keys\r\n");
  EXPECT_EQ(world.store.stats().buckets, 0u);
  EXPECT_EQ(client.Send(many + "\r\n").substr(0, 9), "*33\r\n:0\r\n");
}

// ---- GCRA

TEST(Gcra, DecidesByTheBucketsOfClThrottle) {
  World world;
  Conversation client(world);
  EXPECT_EQ(client.Send("GCRA k 4 1 1000\r\n"), Five(0, 5, 4, -1, 1000));
  EXPECT_EQ(client.Send("gcra k 4 1 1000.0 tokens 2\r\n"), Five(0, 5, 2, -1, 3000));
  EXPECT_EQ(client.Send("CL.THROTTLE k 4 1 1000\r\n"), Five(0, 5, 1, -1, 4000));
  EXPECT_EQ(client.Send("GCRA k 4 1 1000 TOKENS 0\r\n"), Five(0, 5, 1, -1, 4000));
}

TEST(Gcra, APeriodMayHaveAFractionExactly) {
  World world;
  Conversation client(world);
  const base::Instant start = client.now;
  // One token in 0.25 s.
  EXPECT_EQ(client.Send("GCRA k 0 2 0.5\r\n"), Five(0, 1, 0, -1, 1));
  client.now = start + std::chrono::nanoseconds(249'999'999);
  EXPECT_EQ(client.Send("GCRA k 0 2 0.5\r\n"), Five(1, 1, 0, 1, 1));
  client.now = start + std::chrono::nanoseconds(250'000'000);
  EXPECT_EQ(client.Send("GCRA k 0 2 0.5\r\n"), Five(0, 1, 0, -1, 1));
  // One token in a nanosecond.
  EXPECT_EQ(client.Send("GCRA n 9 1 0.000000001 TOKENS 10\r\n"), Five(0, 10, 0, -1, 1));
  client.now = client.now + std::chrono::nanoseconds(3);
  EXPECT_EQ(client.Send("GCRA n 9 1 0.000000001 TOKENS 0\r\n"), Five(0, 10, 3, -1, 1));
}

TEST(Gcra, HasClearErrors) {
  World world;
  Conversation client(world);
  const std::string syntax =
      "-ERR syntax error: GCRA key max_burst tokens_per_period period [TOKENS count]\r\n";
  for (const std::string_view words : {"k 1 1 1 2", "k 1 1 1 TOKEN 2", "k 1 1 1 TOKENS 2 3"})
    EXPECT_EQ(client.Send("GCRA " + std::string(words) + "\r\n"), syntax);
  EXPECT_EQ(client.Send("GCRA k 1 1\r\n"), "-ERR wrong number of arguments for 'gcra' command\r\n");
  for (const std::string_view period : {"x", "1.", ".5", "1e3", "1.0000000001", "0x1", "1.5.5",
                                        "inf", "1.-5", "9223372036854775808"}) {
    EXPECT_EQ(
        client.Send("GCRA k 1 1 " + std::string(period) + "\r\n"),
        "-ERR the period must be a number of seconds up to 9223372036854775807 with at most 9 "
        "decimals, not '" +
            std::string(period) + "'\r\n");
  }
  EXPECT_EQ(client.Send("GCRA k 1 1 0\r\n"), "-ERR Zero rates are not supported\r\n");
  EXPECT_EQ(client.Send("GCRA k 1 1 -0.5\r\n"), "-ERR period must not be negative: -0.5\r\n");
  EXPECT_EQ(client.Send("GCRA k 1 1 1 TOKENS -1\r\n"),
            "-ERR quantity must not be negative: -1\r\n");
  EXPECT_EQ(client.Send("GCRA k 1 1 1 TOKENS x\r\n"), "-ERR Couldn't parse as integer: x\r\n");
}

}  // namespace throttle_group_test
}  // namespace headgate::front::resp
