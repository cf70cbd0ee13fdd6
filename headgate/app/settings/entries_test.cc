#include "headgate/app/settings/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::app {
namespace entries_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<NamedValue>;

std::string ErrorOf(std::string_view text) {
  return std::string(ParseEntries(text).status().message());
}

TEST(Entries, ReadKeysAndValues) {
  EXPECT_EQ(*ParseEntries("api_key=k1"), (Values{{"api_key", "k1"}}));
  EXPECT_EQ(*ParseEntries("api_key=k1,path=/search"),
            (Values{{"api_key", "k1"}, {"path", "/search"}}));
  EXPECT_EQ(*ParseEntries("empty="), (Values{{"empty", ""}}));
  EXPECT_EQ(*ParseEntries("query=a=b"), (Values{{"query", "a=b"}}));
}

TEST(Entries, TakeAnythingBetweenQuotes) {
  EXPECT_EQ(*ParseEntries(R"(path="/a, b",x=y)"), (Values{{"path", "/a, b"}, {"x", "y"}}));
  EXPECT_EQ(*ParseEntries(R"("a=b"="say \"hi\" \\")"), (Values{{"a=b", R"(say "hi" \)"}}));
}

TEST(Entries, SayWhereTheyAreWrong) {
  EXPECT_EQ(ErrorOf(""), "descriptor '', at character 1: a key is missing");
  EXPECT_EQ(ErrorOf("api_key"),
            "descriptor 'api_key', at character 8: '=' is missing after 'api_key'");
  EXPECT_EQ(ErrorOf("a=1,"), "descriptor 'a=1,', at character 5: a key is missing");
  EXPECT_THAT(ErrorOf("a=\"b"), HasSubstr("the closing quote is missing"));
  EXPECT_THAT(ErrorOf("a=\"b\"c"), HasSubstr("text follows a closing quote"));
  EXPECT_THAT(ErrorOf("a=b\"c"), HasSubstr("there is a quote in the middle of a word"));
}

TEST(Entries, AreAtMostAsManyAsADescriptorHas) {
  std::string text = "k=v";
  for (size_t i = 1; i < rule::kEntriesMax; ++i) text += ",k=v";
  EXPECT_EQ(ParseEntries(text)->size(), rule::kEntriesMax);
  EXPECT_THAT(ErrorOf(text + ",k=v"), HasSubstr("there are more than 32 entries"));
}

TEST(DescriptorArguments, TakesTheDomainAsAFlagOrAsTheFirstWord) {
  const std::vector<std::string> bare{"api_key=k1"};
  const std::vector<std::string> with_domain{"edge", "api_key=k1", "user=ann"};
  EXPECT_EQ(ParseDescriptorArguments(std::nullopt, bare)->domain, "default");
  EXPECT_EQ(ParseDescriptorArguments("edge", bare)->domain, "edge");
  EXPECT_EQ(ParseDescriptorArguments(std::nullopt, with_domain)->domain, "edge");
  EXPECT_EQ(ParseDescriptorArguments(std::nullopt, with_domain)->descriptors.size(), 2u);
}

TEST(DescriptorArguments, SaysWhatIsWrong) {
  const std::vector<std::string> domain{"edge"};
  const std::vector<std::string> with_domain{"edge", "api_key=k1"};
  const auto error = [](const auto& descriptors) {
    return std::string(descriptors.status().message());
  };
  EXPECT_EQ(error(ParseDescriptorArguments(std::nullopt, {})), "a descriptor is missing");
  EXPECT_EQ(error(ParseDescriptorArguments(std::nullopt, domain)), "a descriptor is missing");
  EXPECT_EQ(error(ParseDescriptorArguments("jobs", with_domain)),
            "two domains are given: --domain jobs and 'edge', which has no '='");
}

}  // namespace entries_test
}  // namespace headgate::app
