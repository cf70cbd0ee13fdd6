#include "headgate/proxy/grpc.h"

#include <gtest/gtest.h>

namespace headgate::proxy {
namespace grpc_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

http::RequestHead Head(std::string_view type, http::Version version = http::Version::kHttp2) {
  http::RequestHead head{.version = version};
  if (!type.empty()) head.fields.Add("Content-Type", type);
  return head;
}

TEST(Grpc, IsRecognisedByItsMediaTypeOverHttp2) {
  for (const auto type : {"application/grpc", "application/grpc+proto", "application/grpc+json",
                          "application/grpc;x=y", "Application/gRPC"}) {
    EXPECT_TRUE(IsGrpc(Head(type))) << type;
    EXPECT_FALSE(IsGrpc(Head(type, http::Version::kHttp11))) << type;
  }
  for (const auto type : {"", "application/grpc-web", "application/grpc-web+proto",
                          "application/grpcx", "application/json", "application/grp"}) {
    EXPECT_FALSE(IsGrpc(Head(type))) << type;
  }
}

// TimeoutValue is at most eight digits; TimeoutUnit is one letter.
TEST(Grpc, TimeoutIsRead) {
  EXPECT_EQ(ParseGrpcTimeout("1H"), hours(1));
  EXPECT_EQ(ParseGrpcTimeout("2M"), std::chrono::minutes(2));
  EXPECT_EQ(ParseGrpcTimeout("3S"), seconds(3));
  EXPECT_EQ(ParseGrpcTimeout("100m"), milliseconds(100));
  EXPECT_EQ(ParseGrpcTimeout("5u"), std::chrono::microseconds(5));
  EXPECT_EQ(ParseGrpcTimeout("99999999n"), base::Duration(99'999'999));
  EXPECT_EQ(ParseGrpcTimeout("0n"), base::Duration(0));
  EXPECT_GT(ParseGrpcTimeout("99999999H"), hours(24 * 365 * 100));
  for (const auto text :
       {"", "1", "H", "1h", "100000000n", "-1S", "+1S", "1.5S", " 1S", "1 S", "1SS"}) {
    EXPECT_EQ(ParseGrpcTimeout(text), std::nullopt) << text;
  }
}

TEST(Grpc, TimeoutIsWrittenInTheFinestUnitThatFits) {
  EXPECT_EQ(GrpcTimeout(base::Duration(0)), "0n");
  EXPECT_EQ(GrpcTimeout(base::Duration(-5)), "0n");
  EXPECT_EQ(GrpcTimeout(base::Duration(99'999'999)), "99999999n");
  EXPECT_EQ(GrpcTimeout(base::Duration(100'000'999)), "100000u");
  EXPECT_EQ(GrpcTimeout(seconds(2)), "2000000u");
  EXPECT_EQ(GrpcTimeout(hours(1)), "3600000m");
  EXPECT_EQ(GrpcTimeout(base::kDurationMax), "76861433M");
}

TEST(Grpc, WrittenTimeoutIsReadBackAndNeverLonger) {
  for (int64_t ns = 1; ns < base::kDurationMax.count() / 3; ns = ns * 3 + 7) {
    const base::Duration timeout(ns);
    const auto read = ParseGrpcTimeout(GrpcTimeout(timeout));
    ASSERT_TRUE(read) << ns;
    EXPECT_LE(*read, timeout);
    EXPECT_GE(*read, timeout - timeout / 100'000);
  }
}

TEST(Grpc, TimeoutOfACallIsShortenedByItsWait) {
  http::RequestHead call = Head("application/grpc");
  ShortenGrpcTimeout(seconds(1), call);
  EXPECT_EQ(call.fields.size(), 1u) << "without a timeout nothing changes";
  call.fields.Add("grpc-timeout", "3S");
  EXPECT_EQ(GrpcTimeoutOf(call), seconds(3));
  ShortenGrpcTimeout(seconds(1), call);
  EXPECT_EQ(GrpcTimeoutOf(call), seconds(2));
  ShortenGrpcTimeout(seconds(5), call);
  EXPECT_EQ(GrpcTimeoutOf(call), seconds(0));
  http::RequestHead other = Head("application/json");
  other.fields.Add("grpc-timeout", "3S");
  EXPECT_EQ(GrpcTimeoutOf(other), std::nullopt);
  ShortenGrpcTimeout(seconds(1), other);
  EXPECT_EQ(other.fields.Find("grpc-timeout"), "3S");
}

// https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md, but 429: a refusal for
// a limit is RESOURCE_EXHAUSTED.
TEST(Grpc, StatusOfRefusals) {
  EXPECT_EQ(GrpcStatusOf(400), GrpcStatus::kInternal);
  EXPECT_EQ(GrpcStatusOf(401), GrpcStatus::kUnauthenticated);
  EXPECT_EQ(GrpcStatusOf(403), GrpcStatus::kPermissionDenied);
  EXPECT_EQ(GrpcStatusOf(429), GrpcStatus::kResourceExhausted);
  EXPECT_EQ(GrpcStatusOf(503), GrpcStatus::kUnavailable);
}

TEST(Grpc, MessageIsPercentEncoded) {
  std::string out;
  AppendGrpcMessage("50% of ü\n", out);
  EXPECT_EQ(out, "50%25 of %C3%BC%0A");
}

}  // namespace grpc_test
}  // namespace headgate::proxy
