#include "headgate/app/sidecar/share_settings.h"

#include <gtest/gtest.h>

#include <optional>

namespace headgate::app {
namespace share_settings_test {

TEST(SidecarShareSettings, PercentagesAreReadInTenths) {
  EXPECT_EQ(ParsePercentage("10%"), (algorithm::Ratio{100, 1000}));
  EXPECT_EQ(ParsePercentage("0%"), (algorithm::Ratio{0, 1000}));
  EXPECT_EQ(ParsePercentage("100%"), (algorithm::Ratio{1000, 1000}));
  EXPECT_EQ(ParsePercentage("0.1%"), (algorithm::Ratio{1, 1000}));
  for (const auto* text : {"", "%", "10", "-1%", "100.1%", "1.25%", "1.%", ".5%", "1,5%", " 1%"})
    EXPECT_EQ(ParsePercentage(text), std::nullopt) << text;
}

TEST(SidecarShareSettings, TheLastEqualsSignEndsTheNameOfAClient) {
  const auto weight = ParseClientWeight("CN=ann=3");
  ASSERT_TRUE(weight.ok()) << weight.status();
  EXPECT_EQ(weight->client, "CN=ann");
  EXPECT_EQ(weight->weight, 3u);
  EXPECT_EQ(ParseClientWeight("a=1024")->weight, 1024u);
  EXPECT_EQ(ParseClientWeight("==1")->client, "=");
  for (const auto* text : {"", "=", "ann", "=3", "ann=", "ann=0", "ann=1025", "ann=-1", "ann=+1",
                           "ann=1.5", "ann=3 ", "ann= 3", "ann=99999999999"})
    EXPECT_FALSE(ParseClientWeight(text).ok()) << text;
}

}  // namespace share_settings_test
}  // namespace headgate::app
