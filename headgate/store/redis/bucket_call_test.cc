// Calls and answers as text; what the scripts make of them is tested in tests/redis.
#include "headgate/store/redis/bucket_call.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/store/big_endian.h"
#include "headgate/wire/digest.h"

namespace headgate::store::redis {
namespace bucket_call_test {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using wire::RespValue;
using namespace std::chrono_literals;

class BucketCalls : public ::testing::Test {
 protected:
  SharedRequest Request(const LimitSpec& spec, Operation operation = Operation::kTake) {
    return {.name = "hg:{k}",
            .limit = *limits.Intern(*algorithm::Limit::Make(spec)),
            .operation = operation};
  }

  LimitTable limits;
  const LimitSpec token_bucket{.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s};
};

RespValue Bulk(std::string text) {
  return {.kind = RespValue::Kind::kBulk, .integer = 0, .text = std::move(text), .items = {}};
}

TEST_F(BucketCalls, AreOneKeyAndItsArguments) {
  BucketCall call(Request(token_bucket), {});
  EXPECT_EQ(call.key(), "hg:{k}");
  std::string command;
  call.AppendCommand(BucketCall::Form::kDigest, command);
  EXPECT_THAT(command, ::testing::StartsWith(fmt::format(
                           "*6\r\n$7\r\nEVALSHA\r\n$40\r\n{}\r\n$1\r\n1\r\n$6\r\nhg:{{k}}\r\n",
                           call.script().sha1)));
  EXPECT_EQ(call.script().sha1, wire::DigestHex(wire::Digest::kSha1, call.script().text));
  EXPECT_EQ(wire::DigestHex(wire::Digest::kSha1, "abc"),
            "a9993e364706816aba3e25717850c26c9cd0d89d");
}

TEST_F(BucketCalls, ALimitOfNothingNeedsNoStoreButForItsReset) {
  const LimitSpec nothing{.algorithm = Algorithm::kTokenBucket, .requests = 0, .period = 1s};
  const auto denied = BucketCall::AnswerWithoutStore(Request(nothing));
  ASSERT_TRUE(denied.has_value());
  EXPECT_FALSE(denied->decision.allowed);
  EXPECT_TRUE(denied->decision.never_fits());
  EXPECT_TRUE(
      BucketCall::AnswerWithoutStore(Request(nothing, Operation::kRefund))->decision.allowed);
  EXPECT_FALSE(BucketCall::AnswerWithoutStore(Request(nothing, Operation::kReset)).has_value());
  EXPECT_FALSE(BucketCall::AnswerWithoutStore(Request(token_bucket)).has_value());
}

TEST_F(BucketCalls, AQueueTakesNothingBack) {
  const LimitSpec queue{.algorithm = Algorithm::kLeakyBucketQueue, .requests = 1, .period = 1s};
  EXPECT_EQ(BucketCall::AnswerWithoutStore(Request(queue, Operation::kRefund))->status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(BucketCalls, LongNamesAreHashed) {
  SharedRequest request = Request(token_bucket);
  EXPECT_EQ(HashedName("hg:{k}").size(), 37u);
  const std::string longest(512, 'n');
  request.name = longest;
  EXPECT_EQ(BucketCall(request, {}).key(), longest);
  const std::string longer(513, 'n');
  request.name = longer;
  EXPECT_EQ(BucketCall(request, {}).key(), HashedName(longer));
}

TEST_F(BucketCalls, ErrorsAndNonsenseAreNoDecisions) {
  const std::vector<std::pair<RespValue, absl::StatusCode>> replies = {
      {{.kind = RespValue::Kind::kError,
        .integer = 0,
        .text = "OOM command not allowed",
        .items = {}},
       absl::StatusCode::kUnavailable},
      {{}, absl::StatusCode::kInternal},
      {{.kind = RespValue::Kind::kInteger, .integer = 1, .text = {}, .items = {}},
       absl::StatusCode::kInternal},
      {Bulk(""), absl::StatusCode::kInternal},
      {Bulk("\x07"), absl::StatusCode::kInternal},
      {Bulk("\x01"), absl::StatusCode::kInternal},
      {Bulk("\x02"), absl::StatusCode::kInternal},
      {Bulk("\x01" + std::string(30, '\xff')), absl::StatusCode::kInternal},
  };
  for (const auto& [reply, code] : replies) {
    BucketCall call(Request(token_bucket), {});
    const auto answer = call.Read(reply);
    ASSERT_TRUE(answer.has_value()) << reply.ToString();
    EXPECT_EQ(answer->status.code(), code) << reply.ToString();
  }
}

// The C++ kernel checks the script: if the script allows a request that the kernel denies, this is
// our own bug, and does not pass for a decision.
TEST_F(BucketCalls, AScriptThatDecidesOtherwiseIsAnError) {
  std::string reply;
  const uint64_t now = 1'790'000'000'000'000'000;
  Packer(reply).U8(1).U8(1).U8(0).U64(now).U64(now + 60'000'000'000).U32(0).U64(now);
  BucketCall call(Request(token_bucket), {});
  EXPECT_EQ(call.Read(Bulk(reply))->status.code(), absl::StatusCode::kInternal);
}

TEST_F(BucketCalls, ADamagedValueIsAnError) {
  BucketCall call(Request(token_bucket), {});
  EXPECT_EQ(call.Read(Bulk("\x03"))->status.code(), absl::StatusCode::kDataLoss);
}

TEST_F(BucketCalls, TheLimitsOfABucketAreNotChangedForEver) {
  std::string value;
  AppendBucket({.limit = *algorithm::Limit::Make(
                    {.algorithm = Algorithm::kTokenBucket, .requests = 5, .period = 60s}),
                .state = {.edge = 5, .seen = base::Instant::FromNanos(1), .count = 0}},
               value);
  std::string reply;
  Packer(reply).U8(2).U8(0).U64(1'790'000'000'000'000'000);
  reply += value;
  BucketCall call(Request(token_bucket), {});
  std::optional<SharedAnswer> answer;
  int calls = 0;
  while (!answer) {
    answer = call.Read(Bulk(reply));
    ASSERT_LT(++calls, 20);
    if (answer) break;
    EXPECT_EQ(call.part_count(), 6u);
    EXPECT_EQ(call.Part(4), value);
  }
  EXPECT_EQ(answer->status.code(), absl::StatusCode::kAborted);
}

}  // namespace bucket_call_test
}  // namespace headgate::store::redis
