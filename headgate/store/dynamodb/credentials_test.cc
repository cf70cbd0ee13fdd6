#include "headgate/store/dynamodb/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace headgate::store::dynamodb {
namespace credentials_test {

Environment With(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

TEST(Credentials, AreReadFromTheEnvironment) {
  EXPECT_EQ(*CredentialsInEnvironment(With({})), std::nullopt);
  EXPECT_EQ(**CredentialsInEnvironment(
                With({{"AWS_ACCESS_KEY_ID", "AK"}, {"AWS_SECRET_ACCESS_KEY", "s/+="}})),
            (Credentials{.access_key = "AK", .secret_key = "s/+="}));
  EXPECT_EQ((*CredentialsInEnvironment(With({{"AWS_ACCESS_KEY_ID", "AK"},
                                             {"AWS_SECRET_ACCESS_KEY", "s"},
                                             {"AWS_SESSION_TOKEN", "t"}})))
                ->session_token,
            "t");
  EXPECT_TRUE(absl::IsInvalidArgument(
      CredentialsInEnvironment(With({{"AWS_ACCESS_KEY_ID", "AK"}})).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      CredentialsInEnvironment(
          With({{"AWS_ACCESS_KEY_ID", "A\r\nX: y"}, {"AWS_SECRET_ACCESS_KEY", "s"}}))
          .status()));
}

constexpr std::string_view kFile =
    "# a comment\r\n"
    "[default]\r\n"
    "aws_access_key_id = AK1\r\n"
    "aws_secret_access_key=s1==\r\n"
    "region = eu-west-1\r\n"
    "\r\n"
    "[ dev ]\n"
    "; another\n"
    "AWS_ACCESS_KEY_ID=AK2\n"
    "s3 =\n"
    "  aws_access_key_id = not this\n"
    "aws_secret_access_key = s2\n"
    "aws_session_token = t2\n"
    "[half]\n"
    "aws_access_key_id = AK3\n";

TEST(Credentials, AreReadFromAFile) {
  EXPECT_EQ(*CredentialsInFile(kFile, "default"),
            (Credentials{.access_key = "AK1", .secret_key = "s1=="}));
  EXPECT_EQ(*CredentialsInFile(kFile, "dev"),
            (Credentials{.access_key = "AK2", .secret_key = "s2", .session_token = "t2"}));
  EXPECT_TRUE(absl::IsInvalidArgument(CredentialsInFile(kFile, "half").status()));
  EXPECT_TRUE(absl::IsNotFound(CredentialsInFile(kFile, "prod").status()));
  EXPECT_TRUE(absl::IsNotFound(CredentialsInFile("", "default").status()));
}

TEST(Credentials, AreReadFromTheAnswerForARole) {
  const auto found =
      CredentialsInJson(R"({"Code":"Success","AccessKeyId":"AK","SecretAccessKey":"s","Token":"t",)"
                        R"("Expiration":"2026-11-25T12:00:01Z"})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->access_key, "AK");
  EXPECT_EQ(found->secret_key, "s");
  EXPECT_EQ(found->session_token, "t");
  // 20782 days since 1970
  EXPECT_EQ(found->expires_at,
            base::WallTime::FromNanos((int64_t{20'782} * 86'400 + 43'201) * 1'000'000'000));
}

TEST(Credentials, OfADamagedAnswerAreRefused) {
  for (const std::string text :
       {"", "[]", "{", R"({"Code":"Failed"})", R"({"AccessKeyId":1,"SecretAccessKey":"s"})",
        R"({"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"tomorrow"})",
        R"({"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"2026-13-25T12:00:01Z"})",
        R"({"AccessKeyId":"A\r\nX: y","SecretAccessKey":"s"})"})
    EXPECT_FALSE(CredentialsInJson(text).ok()) << text;
}

}  // namespace credentials_test
}  // namespace headgate::store::dynamodb
