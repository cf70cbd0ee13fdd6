// The words of a mapping about answers: the form of the fields, and the body of refusals.
#include <gtest/gtest.h>

#include <string>

#include "headgate/mapping/mapping_file.h"

namespace headgate::mapping {
namespace answer_words_test {

TEST(AnswerWords, SayHowAnswersDescribeLimits) {
  const LoadedMappings loaded =
      LoadMappings("m.yaml", "trusted_proxies: [10.0.0.0/8]\nmappings:\n- {}\n",
                   [](const std::string&) { return absl::NotFoundError("no files"); });
  ASSERT_NE(loaded.set, nullptr) << rule::Describe(loaded.problems);
  EXPECT_EQ(loaded.set->mappings[0].rate_limit_fields, std::nullopt);
  EXPECT_EQ(loaded.set->mappings[0].refusal, nullptr);
  const LoadedMappings own =
      LoadMappings("m.yaml",
                   "trusted_proxies: [10.0.0.0/8]\nmappings:\n- rate_limit_fields: openai\n  "
                   "refusal: {body: no}\n",
                   [](const std::string&) { return absl::NotFoundError("no files"); });
  ASSERT_NE(own.set, nullptr) << rule::Describe(own.problems);
  EXPECT_EQ(own.set->mappings[0].rate_limit_fields, base::RateLimitDialect::kOpenai);
  EXPECT_EQ(own.set->mappings[0].refusal->body(), "no");
  const LoadedMappings wrong =
      LoadMappings("m.yaml",
                   "trusted_proxies: [10.0.0.0/8]\nmappings:\n- rate_limit_fields: x\n  refusal: "
                   "{body: '${x}'}\n",
                   [](const std::string&) { return absl::NotFoundError("no files"); });
  EXPECT_EQ(rule::Describe(wrong.problems),
            "m.yaml:3:22: rate_limit_fields 'x' is not a form\n"
            "  hint: one of all, draft, draft-7, draft-6, draft-3, github, twitter, openai, "
            "anthropic or none\n"
            "m.yaml:4:19: body has an unknown placeholder \"x\"\n"
            "  hint: the placeholders are ${limit}, ${seconds} and ${rule}; $${ stands for ${ "
            "itself\n");
}

}  // namespace answer_words_test
}  // namespace headgate::mapping
