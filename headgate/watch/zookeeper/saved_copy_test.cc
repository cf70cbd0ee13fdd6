#include "headgate/watch/zookeeper/saved_copy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/crc32c.h"

namespace headgate::watch::zookeeper {
namespace saved_copy_test {

using ::testing::HasSubstr;

constexpr std::string_view kPlace = "zk://a:2181/rate-limiter";

SavedCopy Copy() {
  return {.rules = {.nodes = {{"edge", {.text = "domain: edge\n", .zxid = 7, .version = 2}}},
                    .kept = {{"gone", {.text = "domain: gone\n", .zxid = 8, .version = 1}}},
                    .list_zxid = 5,
                    .created_zxid = 3},
          .config = {.nodes = {{"a%2Fb", {.text = "{\"Limit\": 1}", .zxid = 1LL << 40}}},
                     .list_zxid = 6}};
}

TEST(SavedCopy, ComesBackAsItWas) {
  const auto copy = CopyFromText(CopyAsText(Copy(), kPlace), kPlace);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->rules.nodes, Copy().rules.nodes);
  EXPECT_EQ(copy->rules.kept, Copy().rules.kept);
  EXPECT_EQ(copy->rules.list_zxid, 5);
  EXPECT_EQ(copy->rules.created_zxid, 3);
  EXPECT_EQ(copy->config.nodes, Copy().config.nodes);
  EXPECT_EQ(copy->config.list_zxid, 6);
}

TEST(SavedCopy, EveryFlippedBitAndEveryCutIsNoticed) {
  const std::string text = CopyAsText(Copy(), kPlace);
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      EXPECT_FALSE(CopyFromText(damaged, kPlace).ok()) << at;
    }
    EXPECT_FALSE(CopyFromText(text.substr(0, at), kPlace).ok()) << at;
  }
}

TEST(SavedCopy, OfAnotherPathIsNotTaken) {
  for (const std::string_view place :
       {"zk://a:2181/x", "zk://a:2181/rate-limiter/x", "zk://a:2181/"}) {
    const auto copy = CopyFromText(CopyAsText(Copy(), place), kPlace);
    EXPECT_THAT(copy.status().message(), HasSubstr(place));
  }
}

TEST(SavedCopy, IsTakenIfTheUrlNamesOtherServersOfTheEnsemble) {
  for (const std::string_view place :
       {"zk://b:2181/rate-limiter", "zk://a:2181,b:2181,c:2182/rate-limiter"})
    EXPECT_TRUE(CopyFromText(CopyAsText(Copy(), place), kPlace).ok()) << place;
}

TEST(SavedCopy, OtherJsonIsNotACopy) {
  const std::string place = fmt::format(R"("place":"{}")", kPlace);
  const std::string empty = R"({"zxid":1,"nodes":{}})";
  const auto copy_of = [](const std::string& body) {
    return CopyFromText(fmt::format("headgate-rules 1 {:08x}\n{}\n", base::Crc32c(body), body),
                        kPlace);
  };
  EXPECT_TRUE(copy_of(fmt::format(R"({{{},"rules":{},"config":{}}})", place, empty, empty)).ok());
  for (const std::string_view rules :
       {"null", "[]", R"({"zxid":1})", R"({"zxid":"1","nodes":{}})", R"({"zxid":1,"nodes":[]})",
        R"({"zxid":1,"nodes":{"a":1}})", R"({"zxid":1,"nodes":{"a":{"text":"","zxid":1}}})"}) {
    const auto copy = copy_of(fmt::format(R"({{{},"rules":{},"config":{}}})", place, rules, empty));
    EXPECT_TRUE(absl::IsDataLoss(copy.status())) << rules;
  }
  EXPECT_TRUE(absl::IsDataLoss(copy_of("{").status()));
  EXPECT_TRUE(absl::IsDataLoss(
      copy_of(fmt::format(R"({{"rules":{},"config":{}}})", empty, empty)).status()));
}

TEST(SavedCopy, ATextThatIsNotUtf8IsStillACopy) {
  SavedCopy copy = Copy();
  copy.config.nodes["bad"].text = "\xff\xfe";
  EXPECT_TRUE(CopyFromText(CopyAsText(copy, kPlace), kPlace).ok());
}

}  // namespace saved_copy_test
}  // namespace headgate::watch::zookeeper
