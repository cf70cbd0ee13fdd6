#include "headgate/store/redis/permit_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/store/redis/bucket_call.h"

namespace headgate::store::redis {
namespace permit_call_test {

using permit::Answer;
using ::testing::ElementsAre;
using wire::RespValue;
using namespace std::chrono_literals;

RespValue Number(int64_t number) {
  RespValue value;
  value.kind = RespValue::Kind::kInteger;
  value.integer = number;
  return value;
}
RespValue Text(std::string text) {
  RespValue value;
  value.kind = RespValue::Kind::kBulk;
  value.text = std::move(text);
  return value;
}
RespValue Reply(int64_t outcome, int64_t in_flight, std::string first, std::string last,
                int64_t expired) {
  RespValue reply;
  reply.kind = RespValue::Kind::kArray;
  reply.items = {Number(outcome), Number(in_flight), Text(std::move(first)), Text(std::move(last)),
                 Number(expired)};
  return reply;
}

TEST(PermitCall, WritesTheIdAsHexAndTheTtlInMicroseconds) {
  const PermitCall call({.name = "hg:{p|edge|api_key=k1}",
                         .ask = {.kind = permit::Ask::Kind::kAcquire,
                                 .id = {.low = 0xab, .high = 0x1234},
                                 .max = 20,
                                 .ttl = 1s + 1ns}});
  EXPECT_EQ(call.key(), "hg:{p|edge|api_key=k1}");
  EXPECT_THAT(call.arguments(),
              ElementsAre("acquire", "000000000000123400000000000000ab", "20", "1000001"));
}

TEST(PermitCall, ALongNameIsHashed) {
  const std::string name(1000, 'x');
  EXPECT_EQ(PermitCall({.name = name}).key(), HashedName(name));
}

TEST(PermitCall, ReadsEveryOutcome) {
  const auto read = PermitCall::Read(Reply(2, 5, "1000000", "2500000", 3));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, (Answer{.outcome = Answer::Outcome::kFull,
                           .in_flight = 5,
                           .first_end_after = 1s,
                           .last_end_after = 2500ms,
                           .expired = 3}));
  for (int64_t outcome = 0; outcome <= 4; ++outcome) {
    EXPECT_EQ(PermitCall::Read(Reply(outcome, 0, "0", "0", 0))->outcome,
              static_cast<Answer::Outcome>(outcome));
  }
}

TEST(PermitCall, AnUnknownReplyIsAnError) {
  for (const RespValue& reply :
       {Reply(5, 0, "0", "0", 0), Reply(-1, 0, "0", "0", 0), Reply(0, -1, "0", "0", 0),
        Reply(0, 1LL << 40, "0", "0", 0), Reply(0, 0, "-1", "0", 0), Reply(0, 0, "1e3", "0", 0),
        Reply(0, 0, "", "0", 0), Reply(0, 0, "0", "9223372036854775807", 0),
        Reply(0, 0, "0", "0", -1), Number(1), Text("OK"), RespValue{}}) {
    EXPECT_EQ(PermitCall::Read(reply).status().code(), absl::StatusCode::kInternal)
        << reply.ToString();
  }
  RespValue error;
  error.kind = RespValue::Kind::kError;
  error.text = "NOPERM this user has no permissions";
  EXPECT_EQ(PermitCall::Read(error).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace permit_call_test
}  // namespace headgate::store::redis
