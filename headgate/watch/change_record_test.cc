#include "headgate/watch/change_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::watch {
namespace change_record_test {

using ::testing::HasSubstr;

TEST(ChangeRecord, IsALineOfJsonAndBack) {
  const rule::PastChange change{.id = "1",
                                .time = TimeAsText(base::WallTime::FromNanos(1'500'000'000)),
                                .user = "ann",
                                .address = "10.0.0.7",
                                .action = "put",
                                .document = "/a",
                                .outcome = "done",
                                .new_text = "a: \"b\"\n"};
  const std::string text = ChangeAsJson(change, "web-3", 10'000);
  EXPECT_EQ(text,
            R"({"id":"1","time":"1970-01-01T00:00:01.500Z","user":"ann","address":"10.0.0.7",)"
            R"("instance":"web-3","action":"put","document":"/a","outcome":"done",)"
            R"("new_text":"a: \"b\"\n"})");
  const auto back = ChangeFromJson(text);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->new_text, change.new_text);
  EXPECT_FALSE(back->old_text.has_value());
  EXPECT_FALSE(ChangeFromJson("[]").has_value());
  EXPECT_FALSE(ChangeFromJson(text.substr(1)).has_value());

  const auto shortened = ChangeFromJson(ChangeAsJson(change, "web-3", text.size() - 1));
  ASSERT_TRUE(shortened.has_value());
  EXPECT_TRUE(shortened->texts_left_out);
  EXPECT_FALSE(shortened->new_text.has_value());
}

}  // namespace change_record_test
}  // namespace headgate::watch
