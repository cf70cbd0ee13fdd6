#include "headgate/app/sidecar_share_settings.h"

#include <gtest/gtest.h>

#include <optional>

namespace headgate::app {
namespace {

TEST(SidecarShareSettings, PercentagesAreReadInTenths) {
  EXPECT_EQ(ParsePercentage("10%"), (algorithm::Ratio{100, 1000}));
  EXPECT_EQ(ParsePercentage("0%"), (algorithm::Ratio{0, 1000}));
  EXPECT_EQ(ParsePercentage("100%"), (algorithm::Ratio{1000, 1000}));
  EXPECT_EQ(ParsePercentage("0.1%"), (algorithm::Ratio{1, 1000}));
  for (const auto* text : {"", "%", "10", "-1%", "100.1%", "1.25%", "1.%", ".5%", "1,5%", " 1%"})
    EXPECT_EQ(ParsePercentage(text), std::nullopt) << text;
}

}  // namespace
}  // namespace headgate::app
