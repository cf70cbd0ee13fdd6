// Rules whose costs are sizes (rule/size_cost.h), edited in place.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/edit/rollout_edit.h"
#include "headgate/rule/edit/rule_edit.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/size_cost.h"

namespace headgate::rule::edit {
namespace size_cost_edit_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

TEST(SizeCostInAFile, IsEditedInPlace) {
  const auto file = [](std::string_view per) {
    return std::string(
               "domain: d\ndescriptors:\n- key: k\n  rate_limit:\n    unit: minute\n"
               "    requests_per_unit: 100\n    cost:  # of what is sent\n      of: "
               "response_bytes\n"
               "      per: ")
        .append(per)
        .append("  # a page\n");
  };
  const auto put = [&](std::string_view per) {
    const RuleEntry entry{.key = "k"};
    return PutRule(file("4KiB"), {&entry, 1},
                   std::string("rate_limit: {unit: minute, requests_per_unit: 100, cost: {of: "
                               "response_bytes, per: ")
                       .append(per)
                       .append("}}"));
  };
  EXPECT_EQ(*put("4KiB"), file("4KiB")) << "nothing changes";
  EXPECT_EQ(*put("8KiB"), file("8KiB"));
}

TEST(SizeCostInAFile, IsPromotedWithItsRollOut) {
  const RuleEntry entry{.key = "k"};
  const auto text = PromoteRollout(
      "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: minute, requests_per_unit: 9}\n"
      "  rollout:\n    percent: 5\n    rate_limit: {unit: minute, requests_per_unit: 7, cost: "
      "{of: request_bytes, per: 1KiB}}\n",
      {&entry, 1});
  ASSERT_TRUE(text.ok()) << text.status();
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = *text}};
  const LoadResult loaded = LoadRules(files);
  ASSERT_TRUE(loaded.ok()) << *text;
  EXPECT_EQ(loaded.rules->rules()[0].rollout, nullptr);
  EXPECT_EQ(
      loaded.rules->rules()[0].limits[0].cost,
      (SizeCost{.of = SizeCost::Of::kRequestBytes, .per_bytes = 1024, .reserve_bytes = 1024}));
}

}  // namespace size_cost_edit_test
}  // namespace headgate::rule::edit
