#include "headgate/front/resp/counter_verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include <fmt/format.h>

#include "headgate/front/resp/conversation.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::front::resp {
namespace counter_verbs_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::StartsWith;

constexpr std::string_view kMin = "-9223372036854775808";
constexpr std::string_view kMax = "9223372036854775807";

// A client of a server with a memory store. Counters begin as 0.
struct Client {
  // The two numbers of the reply, or its error without the line end.
  std::string Increx(std::string_view arguments) {
    const std::string reply = conversation.Send(fmt::format("INCREX {}\r\n", arguments));
    wire::RespReader reader;
    size_t consumed = 0;
    EXPECT_EQ(reader.Read(reply, consumed), wire::RespReader::Step::kValue) << reply;
    if (!reply.starts_with('*')) return reply.substr(0, reply.size() - 2);
    const wire::RespValue& value = reader.value();
    const auto text = [](const wire::RespValue& item) {
      return item.kind == wire::RespValue::Kind::kInteger ? std::to_string(item.integer)
                                                          : item.text;
    };
    return text(value.items.at(0)) + " " + text(value.items.at(1));
  }
  std::string Send(std::string_view bytes) { return conversation.Send(bytes); }

  World world;
  Conversation conversation{world, {.loopback = true}};
};

TEST(Increx, CountsByOneByIntegersAndByDecimals) {
  Client client;
  EXPECT_EQ(client.Send("INCREX k\r\n"), "*2\r\n:1\r\n:1\r\n");
  EXPECT_EQ(client.Send("increx k byint -5\r\n"), "*2\r\n:-4\r\n:-5\r\n");
  EXPECT_EQ(client.Send("INCREX k BYFLOAT 0.25\r\n"), "*2\r\n$5\r\n-3.75\r\n$4\r\n0.25\r\n");
  client.Send("HELLO 3\r\n");
  EXPECT_EQ(client.Send("INCREX k BYFLOAT 0.25\r\n"), "*2\r\n,-3.5\r\n,0.25\r\n");
  EXPECT_EQ(client.Send("INCREX k BYFLOAT 0.5\r\n"), "*2\r\n,-3\r\n,0.5\r\n");
  EXPECT_EQ(client.Send("INCREX k\r\n"), "*2\r\n:-2\r\n:1\r\n");
}

TEST(Increx, IsAFixedWindowInOneCommand) {
  Client client;
  for (const std::string_view reply : {"1 1", "2 1", "3 1", "3 0", "3 0"})
    EXPECT_EQ(client.Increx("k UBOUND 3 EX 60 ENX"), reply);
  client.conversation.now = client.conversation.now + seconds(60) - base::Duration(1);
  EXPECT_EQ(client.Increx("k UBOUND 3 EX 60 ENX"), "3 0");
  EXPECT_EQ(client.Send("TTL k\r\nPTTL k\r\n"), ":1\r\n:1\r\n");
  client.conversation.now = client.conversation.now + base::Duration(1);
  EXPECT_EQ(client.Increx("k UBOUND 3 EX 60 ENX"), "1 1");
}

TEST(Increx, WhatWouldLeaveTheBoundsIsRefusedOrSaturated) {
  Client client;
  EXPECT_EQ(client.Increx("k BYINT 5 LBOUND 10"), "0 0");
  EXPECT_EQ(client.Send("EXISTS k\r\n"), ":0\r\n");
  EXPECT_EQ(client.Increx("k BYINT 5 LBOUND 10 SATURATE"), "10 10");
  EXPECT_EQ(client.Increx("k BYINT 10 UBOUND 15 EX 9"), "10 0");
  EXPECT_EQ(client.Send("TTL k\r\n"), ":-1\r\n");
  EXPECT_EQ(client.Increx("k BYINT 10 UBOUND 15 SATURATE EX 9"), "15 5");
  EXPECT_EQ(client.Send("TTL k\r\n"), ":9\r\n");
  EXPECT_EQ(client.Increx("k LBOUND 0 BYINT 100 UBOUND 12 SATURATE"), "12 -3");
  EXPECT_EQ(client.Increx("f BYFLOAT 10 UBOUND 5.5"), "0 0");
  EXPECT_EQ(client.Increx("f BYFLOAT 10 UBOUND 5.5 SATURATE"), "5.5 5.5");
}

TEST(Increx, TheTypeIsABoundToo) {
  Client client;
  const auto with = [&](std::string_view format, std::string_view number) {
    return client.Increx(fmt::format(fmt::runtime(format), number));
  };
  EXPECT_EQ(with("k BYINT {}", kMax), fmt::format("{0} {0}", kMax));
  EXPECT_EQ(client.Increx("k"), fmt::format("{} 0", kMax));
  EXPECT_EQ(client.Increx("k SATURATE"), fmt::format("{} 0", kMax));
  EXPECT_EQ(client.Increx("k BYFLOAT 1"), fmt::format("{} 0", kMax));
  EXPECT_EQ(with("k UBOUND {} SATURATE", kMin), "-ERR applied increment would overflow");
  EXPECT_EQ(client.Increx("k BYINT 0"), fmt::format("{} 0", kMax));
  EXPECT_EQ(client.Increx("k BYFLOAT -0.5"),
            "-ERR the value would need more than 64 bits for its digits");
}

TEST(Increx, ExpiryOptions) {
  Client client;
  const int64_t now_s = client.conversation.now.ns / 1'000'000'000;
  const auto ttl = [&] { return client.Send("PTTL k\r\n"); };
  client.Increx("k EX 10");
  EXPECT_EQ(ttl(), ":10000\r\n");
  client.Increx("k PX 2500");
  EXPECT_EQ(ttl(), ":2500\r\n");
  EXPECT_EQ(client.Send("TTL k\r\n"), ":3\r\n");
  client.Increx("k");
  EXPECT_EQ(ttl(), ":2500\r\n");
  client.Increx("k PX 9 ENX");
  EXPECT_EQ(ttl(), ":2500\r\n");
  client.Increx("k PERSIST");
  EXPECT_EQ(ttl(), ":-1\r\n");
  client.Increx("k PX 9 ENX");
  EXPECT_EQ(ttl(), ":9\r\n");
  client.Increx(fmt::format("k EXAT {}", now_s + 7));
  EXPECT_EQ(ttl(), ":7000\r\n");
  client.Increx(fmt::format("k PXAT {}", now_s * 1000 + 77));
  EXPECT_EQ(ttl(), ":77\r\n");
  EXPECT_EQ(client.Increx("k EXAT 1 ENX"), "9 1");
  EXPECT_EQ(ttl(), ":77\r\n");
  EXPECT_EQ(client.Increx(fmt::format("k EXAT {}", now_s)), "10 1");
  EXPECT_EQ(ttl(), ":-2\r\n");
}

TEST(Increx, ErrorsAreThoseOfRedisAndChangeNothing) {
  Client client;
  const auto expect = [&](std::string_view error, std::vector<std::string_view> commands) {
    for (const std::string_view arguments : commands)
      EXPECT_EQ(client.Increx(arguments), fmt::format("-ERR {}", error)) << arguments;
  };
  expect("syntax error", {"k FOO",
                          "k 1",
                          "k BYINT",
                          "k BYINT 1 FOO",
                          "k BYINT 1 BYFLOAT 1",
                          "k BYFLOAT 1 BYINT 1",
                          "k BYINT 1 BYINT 1",
                          "k BYFLOAT 1 BYFLOAT 1",
                          "k LBOUND",
                          "k UBOUND",
                          "k LBOUND 0 LBOUND 0",
                          "k UBOUND 9 UBOUND 9",
                          "k SATURATE SATURATE",
                          "k ENX ENX EX 1",
                          "k PERSIST PERSIST",
                          "k EX 1 EX 1",
                          "k EX 1 PX 1",
                          "k PX 1 PXAT 1",
                          "k EX 1 PERSIST",
                          "k PERSIST EX 1",
                          "k PERSIST ENX",
                          "k ENX PERSIST",
                          "k EX"});
  expect("Increment is not an integer or out of range",
         {"k BYINT abc", "k BYINT 1.5", "k BYINT +1", "k BYINT 01", "k BYINT 9223372036854775808"});
  expect("Increment is not a valid float",
         {"k BYFLOAT abc", "k BYFLOAT inf", "k BYFLOAT nan", "k BYFLOAT 0x1", "k BYFLOAT \"\""});
  expect("LBOUND is not an integer or out of range", {"k LBOUND 0.5", "k LBOUND abc BYINT 1"});
  expect("UBOUND is not an integer or out of range", {"k UBOUND inf"});
  expect("LBOUND is not a valid float", {"k LBOUND abc BYFLOAT 1", "k LBOUND -inf BYFLOAT 1"});
  expect("UBOUND is not a valid float", {"k BYFLOAT 1 UBOUND abc", "k BYFLOAT 1 UBOUND inf"});
  expect("LBOUND can't be greater than UBOUND",
         {"k LBOUND 10 UBOUND 5", "k BYFLOAT 1 UBOUND 1.4 LBOUND 1.5"});
  expect("ENX flag requires an expiration", {"k ENX", "k BYINT 1 ENX"});
  expect("value is not an integer or out of range", {"k EX abc", "k PX 1.5"});
  expect("invalid expire time in 'increx' command",
         {"k EX 0", "k EX -1", "k PX 0", "k EXAT 0", "k PXAT -5", "k EX 9223372036854775807",
          "k PX 4611686018427", "k EXAT 4611686019"});
  expect("Increment has more than 17 decimals, or its digits need more than 64 bits",
         {"k BYFLOAT 0.000000000000000001", "k BYFLOAT 1e19"});
  EXPECT_EQ(client.Send("INCREX\r\n"), "-ERR wrong number of arguments for 'increx' command\r\n");
  EXPECT_EQ(client.Send("EXISTS k\r\n"), ":0\r\n");
  EXPECT_EQ(client.Increx("k PX 4611686018426"), "1 1");
}

TEST(Increx, AnIntegerChangesOnlyIntegers) {
  Client client;
  client.Increx("k BYFLOAT 1.5 EX 60");
  EXPECT_EQ(client.Increx("k PERSIST"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(client.Send("TTL k\r\n"), ":60\r\n");
  EXPECT_EQ(client.Increx("k BYFLOAT 1.50"), "3 1.5");
  EXPECT_EQ(client.Increx("k"), "4 1");
}

TEST(Increx, DecimalsAreExact) {
  Client client;
  client.Increx("k BYFLOAT 0.1");
  EXPECT_EQ(client.Increx("k BYFLOAT 0.2"), "0.3 0.2");
  EXPECT_EQ(client.Increx("k BYFLOAT 1e-17"), "0.30000000000000001 0.00000000000000001");
}

TEST(Increx, AKeyHoldsABucketOrACounter) {
  constexpr std::string_view kError =
      "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
  Client client;
  client.Send("INCREX counter PX 1500\r\n");
  client.Send("GCRA bucket 4 1 1.5\r\n");
  EXPECT_EQ(client.Send("INCREX bucket\r\n"), kError);
  EXPECT_EQ(client.Send("CL.THROTTLE counter 4 1 10\r\n"), kError);
  EXPECT_EQ(client.Send("CL.THROTTLE counter 4 1 10 0\r\n"), kError);
  EXPECT_EQ(client.Send("CL.THROTTLE counter 4 1 10 9\r\n"), kError);
  EXPECT_EQ(client.Send("GCRA counter 4 1 10\r\n"), kError);
  EXPECT_EQ(client.Send("HG.CHECKM other 4 1 10 1 counter 4 1 10 1\r\n"), kError);
  EXPECT_EQ(client.Send("EXISTS other\r\n"), ":0\r\n");
  client.conversation.now = client.conversation.now + milliseconds(1500);
  EXPECT_EQ(client.Increx("bucket"), "1 1");
  EXPECT_THAT(client.Send("CL.THROTTLE counter 4 1 10\r\n"),
              StartsWith("*5\r\n:0\r\n:5\r\n:4\r\n"));
}

TEST(Increx, KeyVerbsKnowCounters) {
  Client client;
  client.Send("INCREX a\r\nINCREX b BYINT 0 EX 5\r\nGCRA c 4 1 1\r\n");
  EXPECT_EQ(client.Send("EXISTS a b c d a\r\n"), ":4\r\n");
  EXPECT_EQ(client.Send("TTL a\r\nTTL b\r\nPTTL a\r\nPTTL b\r\n"), ":-1\r\n:5\r\n:-1\r\n:5000\r\n");
  EXPECT_EQ(client.Send("DEL a b c d\r\n"), ":3\r\n");
  EXPECT_EQ(client.Send("EXISTS a b c d\r\nTTL a\r\n"), ":0\r\n:-2\r\n");
  EXPECT_EQ(client.Increx("a"), "1 1");
}

TEST(Increx, KeepsItsPlaceInAPipelineAndInATransaction) {
  Client client;
  const std::string throttled = "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:1000\r\n";
  EXPECT_EQ(
      client.Send("CL.THROTTLE a 4 1 1000\r\nINCREX k\r\nCL.THROTTLE b 4 1 1000\r\nINCREX k\r\n"),
      throttled + "*2\r\n:1\r\n:1\r\n" + throttled + "*2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(client.Send("MULTI\r\nINCREX k\r\nCL.THROTTLE c 4 1 1000\r\nINCREX k ENX\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*2\r\n:3\r\n:1\r\n" + throttled +
                "-ERR ENX flag requires an expiration\r\n");
}

TEST(Increx, NeedsTheRightToCheckAndIsCountedLikeCheck) {
  Client client;
  client.Increx("k UBOUND 1");
  client.Increx("k UBOUND 1");
  client.Increx("k ENX");
  EXPECT_EQ(client.world.own_limits.of(limiter::Outcome::kAllowed), 1u);
  EXPECT_EQ(client.world.own_limits.of(limiter::Outcome::kDenied), 1u);
  EXPECT_EQ(client.world.context.counters.errors.value(), 1u);
  Conversation remote(client.world, {.loopback = false});
  EXPECT_EQ(remote.Send("INCREX k\r\n"), "*2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(FindCommand("increx")->needs, FindCommand("cl.throttle")->needs);
}

}  // namespace counter_verbs_test
}  // namespace headgate::front::resp
