#include "headgate/client/http/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::client::http {
namespace origin_test {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Origin, ReadsSchemeHostAndPort) {
  EXPECT_EQ(*ParseOrigin("http://127.0.0.1:8000"),
            (Origin{.tls = false, .host = "127.0.0.1", .port = 8000}));
  EXPECT_EQ(*ParseOrigin("https://dynamodb.eu-west-1.amazonaws.com/"),
            (Origin{.tls = true, .host = "dynamodb.eu-west-1.amazonaws.com", .port = 443}));
  EXPECT_EQ(*ParseOrigin("http://[::1]"), (Origin{.tls = false, .host = "::1", .port = 80}));
}

TEST(Origin, IsWrittenAsItIsRead) {
  for (const std::string text :
       {"http://127.0.0.1:8000", "https://a.example", "http://[::1]:81", "https://a:80"})
    EXPECT_EQ(ParseOrigin(text)->ToString(), text);
  EXPECT_EQ(ParseOrigin("https://a:443")->Authority(), "a");
  EXPECT_EQ(ParseOrigin("http://a:443")->Authority(), "a:443");
}

TEST(Origin, RefusesEverythingElseWithoutRepeatingIt) {
  for (const std::string text :
       {"", "a", "ftp://a", "http://", "http://ann:hunter2@a", "http://a/hunter2",
        "http://a?hunter2", "http://a#hunter2", "http://a,hunter2", "http://a:0",
        "http://a:hunter2", "http://a b", "http://a%20b", "http://a\r\nhunter2: x", "http://a//"}) {
    const auto origin = ParseOrigin(text);
    ASSERT_TRUE(absl::IsInvalidArgument(origin.status())) << text;
  }
  EXPECT_THAT(std::string(ParseOrigin("http://ann:hunter2@a").status().message()),
              Not(HasSubstr("hunter2")));
}

}  // namespace origin_test
}  // namespace headgate::client::http
