#include "headgate/proxy/upstream/list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::proxy::upstream {
namespace list_test {

using ::testing::HasSubstr;

TEST(UpstreamList, IsReadFromText) {
  const auto list = ParseList("http://127.0.0.1:9000,[::1]:9001,http://app.local/,unix:/run/s");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_FALSE(list->http2);
  EXPECT_EQ(list->targets, (std::vector<net::StreamTarget>{{.host = "127.0.0.1", .port = 9000},
                                                           {.host = "::1", .port = 9001},
                                                           {.host = "app.local", .port = 80},
                                                           {.unix_path = "/run/s"}}));
  const auto http2 = ParseList("h2c://127.0.0.1:50051");
  ASSERT_TRUE(http2.ok());
  EXPECT_TRUE(http2->http2);
  const auto over_tls = ParseList("https://a,https://b:8443");
  ASSERT_TRUE(over_tls.ok());
  EXPECT_TRUE(over_tls->tls);
  EXPECT_FALSE(over_tls->http2);
  EXPECT_EQ(over_tls->targets[0].port, 443);
  EXPECT_EQ(over_tls->targets[1].port, 8443);
  const auto http2_over_tls = ParseList("h2://a");
  ASSERT_TRUE(http2_over_tls.ok());
  EXPECT_TRUE(http2_over_tls->tls);
  EXPECT_TRUE(http2_over_tls->http2);
  for (const auto* text : {"", "http://", "https://unix:/run/a", "https://a,http://b", "ftp://a",
                           "http://a:99999", "http://a/path", "http://a,", "http://a,http://a:80"})
    EXPECT_FALSE(ParseList(text).ok()) << text;
}

TEST(UpstreamList, ThePathOfAUnixSocketMustFitIntoAnAddress) {
  const std::string longest(107, 'a');
  const auto list = ParseList("http://unix:" + longest);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->targets, (std::vector<net::StreamTarget>{{.unix_path = longest}}));
  const auto message = [](const std::string& text) {
    const auto refused = ParseList(text);
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << text;
    return std::string(refused.status().message());
  };
  EXPECT_THAT(message("http://unix:"), HasSubstr("the path of the Unix socket is missing"));
  EXPECT_THAT(message("http://a,unix:"), HasSubstr("the path of the Unix socket is missing"));
  EXPECT_THAT(message("h2c://unix:" + longest + "a"),
              HasSubstr("has 108 bytes; the system takes at most 107"));
}

}  // namespace list_test
}  // namespace headgate::proxy::upstream
