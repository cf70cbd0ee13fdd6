#include "headgate/http/fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headgate::http {
namespace fields_test {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

std::vector<Fields::Field> ListOf(const Fields& fields) { return {fields.begin(), fields.end()}; }

TEST(Fields, KeepTheirOrderAndTheirCase) {
  Fields fields;
  fields.Add("Accept", "a");
  fields.Add("x-B", "");
  fields.Add("ACCEPT", "c");
  EXPECT_THAT(ListOf(fields), ElementsAre(Fields::Field{"Accept", "a"}, Fields::Field{"x-B", ""},
                                          Fields::Field{"ACCEPT", "c"}));
}

TEST(Fields, AreFoundWithoutRegardToCase) {
  Fields fields;
  fields.Add("Accept", "first");
  fields.Add("accept", "second");
  EXPECT_THAT(fields.Find("ACCEPT"), Optional(Eq("first")));
  EXPECT_EQ(fields.Find("accep"), std::nullopt);
  EXPECT_EQ(fields.CountOf("aCCept"), 2u);
  EXPECT_EQ(fields.CountOf("other"), 0u);
}

TEST(Fields, AllOfOneNameAreRemoved) {
  Fields fields;
  for (const char* name : {"a", "B", "c", "b"}) fields.Add(name, name);
  EXPECT_EQ(fields.Remove("b"), 2u);
  EXPECT_EQ(fields.Remove("b"), 0u);
  fields.Add("d", "d");
  EXPECT_THAT(ListOf(fields), ElementsAre(Fields::Field{"a", "a"}, Fields::Field{"c", "c"},
                                          Fields::Field{"d", "d"}));
  fields.Clear();
  EXPECT_TRUE(fields.empty());
}

TEST(Fields, AreEqualIfNamesAndValuesAre) {
  Fields one;
  Fields other;
  one.Add("a", "bc");
  other.Add("ab", "c");
  EXPECT_FALSE(one == other);
  other.Clear();
  other.Add("x", "y");
  other.Add("a", "bc");
  other.Remove("x");
  EXPECT_TRUE(one == other);
}

}  // namespace fields_test
}  // namespace headgate::http
