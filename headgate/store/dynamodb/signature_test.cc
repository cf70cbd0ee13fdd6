// AWS has published the expected signatures: in "Signing AWS API requests" (the first test) and in
// its Signature Version 4 test suite (the others).
#include "headgate/store/dynamodb/signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::dynamodb {
namespace signature_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;

// 2015-08-30 12:36:00 UTC
constexpr base::WallTime kNow = base::WallTime::FromNanos(1'440'938'160'000'000'000);

const Credentials kCredentials{.access_key = "AKIDEXAMPLE",
                               .secret_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};

ToSign Example(std::string_view method) {
  return {.method = method,
          .authority = "example.amazonaws.com",
          .region = "us-east-1",
          .service = "service"};
}

TEST(Signature, IsThatOfTheUserGuide) {
  EXPECT_THAT(
      SignatureFields({.method = "GET",
                       .authority = "iam.amazonaws.com",
                       .query = "Action=ListUsers&Version=2010-05-08",
                       .fields = {"Content-Type: application/x-www-form-urlencoded; charset=utf-8"},
                       .region = "us-east-1",
                       .service = "iam"},
                      kCredentials, kNow),
      ElementsAre("X-Amz-Date: 20150830T123600Z",
                  "Authorization: AWS4-HMAC-SHA256 "
                  "Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                  "SignedHeaders=content-type;host;x-amz-date, "
                  "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"));
}

TEST(Signature, IsThatOfTheTestSuite) {
  EXPECT_THAT(SignatureFields(Example("GET"), kCredentials, kNow).back(),
              EndsWith("=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"))
      << "get-vanilla";
  EXPECT_THAT(SignatureFields(Example("POST"), kCredentials, kNow).back(),
              EndsWith("=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"))
      << "post-vanilla";
  ToSign form = Example("POST");
  form.fields = {"Content-Type: application/x-www-form-urlencoded"};
  form.body = "Param1=value1";
  EXPECT_THAT(SignatureFields(form, kCredentials, kNow).back(),
              EndsWith("=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"))
      << "post-x-www-form-urlencoded";
}

TEST(Signature, CoversTheTokenOfARole) {
  Credentials role = kCredentials;
  role.session_token =
      "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSP"
      "fIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT"
      "7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlz"
      "m8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  EXPECT_THAT(
      SignatureFields(Example("POST"), role, kNow),
      ElementsAre("X-Amz-Date: 20150830T123600Z", "X-Amz-Security-Token: " + role.session_token,
                  EndsWith("SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="
                           "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead")))
      << "post-sts-header-before";
}

TEST(Signature, DependsOnEachPartOfTheRequest) {
  const auto signature = [](const ToSign& request, base::WallTime now = kNow) {
    return SignatureFields(request, kCredentials, now).back();
  };
  const std::string plain = signature(Example("POST"));
  ToSign other = Example("POST");
  other.body = "x";
  EXPECT_NE(signature(other), plain);
  other = Example("POST");
  other.authority = "example.amazonaws.com:81";
  EXPECT_NE(signature(other), plain);
  other = Example("POST");
  other.fields = {"X-Amz-Target: a"};
  EXPECT_NE(signature(other), plain);
  EXPECT_NE(signature(Example("POST"), kNow + std::chrono::seconds(1)), plain);
  EXPECT_EQ(signature(Example("POST"), kNow + std::chrono::milliseconds(999)), plain);
}

}  // namespace signature_test
}  // namespace headgate::store::dynamodb
