#include "headgate/app/settings/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace headgate::app {
namespace listen_address_test {

TEST(ListenAddress, RefusesASettingThatComesTwice) {
  const auto reason = [](std::string_view text) {
    return std::string(ParseListenAddress(text).status().message());
  };
  EXPECT_EQ(reason(":80?fields=draft&fields=github"), "fields comes twice");
  EXPECT_EQ(reason(":80?fields=draft&proxy_from=unix&fields=draft"), "fields comes twice");
  EXPECT_EQ(reason(":80?refusal_file=a&refusal_file=b"), "refusal_file comes twice");
  EXPECT_EQ(reason(":80?refusal_file="), "refusal_file names no file");
  EXPECT_EQ(reason("unix:s?mode=0600&mode=0660"), "mode comes twice");
}

TEST(ListenAddress, BelievesSeveralNetworksOfProxies) {
  const auto address = ParseListenAddress(":80?proxy_from=10.0.0.0/8&fields=draft&proxy_from=::1");
  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->fields, wire::RateLimitDialect::kDraft);
  EXPECT_TRUE(address->proxies.networks.Contains(*base::ParseIpAddress("10.0.0.1")));
  EXPECT_TRUE(address->proxies.networks.Contains(*base::ParseIpAddress("::1")));
}

}  // namespace listen_address_test
}  // namespace headgate::app
