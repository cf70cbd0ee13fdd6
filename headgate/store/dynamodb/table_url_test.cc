#include "headgate/store/dynamodb/table_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace headgate::store::dynamodb {
namespace table_url_test {

using ::testing::HasSubstr;
using ::testing::Not;

Environment With(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}
const Environment kNone = With({});

std::string WhyNot(const std::string& url, const Environment& environment = kNone) {
  const auto table = ParseTableUrl(url, environment);
  EXPECT_TRUE(absl::IsInvalidArgument(table.status())) << url;
  return std::string(table.status().message());
}

TEST(TableUrl, NamesATableAndItsRegion) {
  const auto table = ParseTableUrl("dynamodb://limits?region=eu-west-1", kNone);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->name, "limits");
  EXPECT_EQ(table->region, "eu-west-1");
  EXPECT_EQ(table->endpoint.ToString(), "https://dynamodb.eu-west-1.amazonaws.com");
  EXPECT_EQ(ParseTableUrl("dynamodb://abc?region=cn-north-1", kNone)->endpoint.ToString(),
            "https://dynamodb.cn-north-1.amazonaws.com.cn");
}

TEST(TableUrl, TakesAnotherEndpoint) {
  for (const std::string url :
       {"dynamodb://limits?endpoint=http://127.0.0.1:8000&region=local",
        "dynamodb://limits/?region=local&endpoint=http%3A%2F%2F127.0.0.1%3A8000&profile=dev"}) {
    const auto table = ParseTableUrl(url, kNone);
    ASSERT_TRUE(table.ok()) << table.status();
    EXPECT_EQ(NameOf(*table), "dynamodb://limits?region=local&endpoint=http://127.0.0.1:8000");
  }
}

TEST(TableUrl, ReadsTheRestFromTheEnvironment) {
  const auto table = ParseTableUrl("dynamodb://limits", With({{"AWS_REGION", "eu-west-1"},
                                                              {"AWS_DEFAULT_REGION", "x"},
                                                              {"AWS_ENDPOINT_URL", "http://a"},
                                                              {"AWS_PROFILE", "dev"}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->region, "eu-west-1");
  EXPECT_EQ(table->endpoint.ToString(), "http://a");
  EXPECT_EQ(table->profile, "dev");
  EXPECT_EQ(ParseTableUrl("dynamodb://limits", With({{"AWS_DEFAULT_REGION", "x"}}))->region, "x");
  EXPECT_EQ(ParseTableUrl("dynamodb://limits?region=y&endpoint=http://b&profile=z",
                          With({{"AWS_REGION", "x"},
                                {"AWS_ENDPOINT_URL_DYNAMODB", "http://c"},
                                {"AWS_PROFILE", "dev"}}))
                ->profile,
            "z");
}

TEST(TableUrl, SaysWhatIsWrong) {
  EXPECT_THAT(WhyNot("dynamodb://limits"), HasSubstr("the region is missing"));
  EXPECT_THAT(WhyNot("dynamodb://"), HasSubstr("no name of a table"));
  EXPECT_THAT(WhyNot("dynamodb://ab?region=x"), HasSubstr("no name of a table"));
  EXPECT_THAT(WhyNot("dynamodb://a/b?region=x"), HasSubstr("no name of a table"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region=x&region=y"), HasSubstr("region is given twice"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region="), HasSubstr("region has no value"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region=a.b"), HasSubstr("the region is not one"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region=%zz"), HasSubstr("'%'"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region=x&endpoint=ftp://a"), HasSubstr("the endpoint"));
  EXPECT_THAT(WhyNot("dynamodb://abc?region=x&profile=a%5D"), HasSubstr("the profile"));
  EXPECT_THAT(WhyNot("redis://abc"), HasSubstr("dynamodb://"));
}

TEST(TableUrl, RepeatsNoSecret) {
  for (const std::string url :
       {"dynamodb://AKID:hunter2@limits?region=x", "dynamodb://limits?region=x&hunter2",
        "dynamodb://limits?region=hunter2@", "dynamodb://limits?region=x&secret_key=hunter2",
        "dynamodb://limits?region=x&endpoint=http://ann:hunter2@a",
        "dynamodb://limits?region=x&endpoint=hunter2", "dynamodb://limits/hunter2?region=x"})
    EXPECT_THAT(WhyNot(url), Not(HasSubstr("hunter2"))) << url;
}

}  // namespace table_url_test
}  // namespace headgate::store::dynamodb
