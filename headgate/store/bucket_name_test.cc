#include "headgate/store/bucket_name.h"

#include <gtest/gtest.h>

#include <set>

namespace headgate::store {
namespace {

std::string Rule(std::string_view domain, std::vector<std::pair<std::string, std::string>> entries,
                 uint32_t index = 0) {
  std::string out;
  BucketName name(out, domain);
  for (const auto& [key, value] : entries) name.AddEntry(key, value);
  return std::string(name.OfLimit(index));
}

TEST(BucketName, IsReadable) {
  EXPECT_EQ(Rule("edge", {{"api_key", "k1"}, {"path", "/search"}}), "hg:{edge|api_key=k1|path=/search}");
  EXPECT_EQ(Rule("edge", {{"api_key", "k1"}}, 1), "hg:{edge|api_key=k1#1}");
  std::string out;
  BucketName pattern(out, "edge");
  pattern.AddPattern("api_key_*");
  EXPECT_EQ(pattern.OfLimit(0), "hg:{edge|api_key_*}");
  BucketName override_name(out, "edge");
  override_name.AddEntry("user", "ann");
  EXPECT_EQ(override_name.OfOverride("minute"), "hg:{edge|user=ann#minute}");
  EXPECT_EQ(BucketName::OfThrottle("user123", out), "hg:{#throttle|user123}");
}

TEST(BucketName, LetsNobodyWriteSeparators) {
  EXPECT_EQ(Rule("a|b=c", {{"{x}", "50%#1"}}), "hg:{a%7Cb%3Dc|%7Bx%7D=50%25%231}");
  EXPECT_EQ(Rule("e", {{"k", std::string("a b\0\xc3\xa9", 6)}}), "hg:{e|k=a%20b%00%C3%A9}");
}

TEST(BucketName, TellsAllBucketsApart) {
  std::set<std::string> names;
  int made = 0;
  const auto add = [&](const std::string& name) {
    EXPECT_TRUE(names.insert(name).second) << name;
    ++made;
  };
  const std::vector<std::string> parts = {"", "a", "=", "a=", "|", "a|a", "#1", "%7C", "{", "}", "#throttle|a"};
  for (const std::string& domain : parts) {
    add(Rule(domain, {}));
    add(Rule(domain, {}, 1));
    std::string out;
    BucketName minute(out, domain);
    add(std::string(minute.OfOverride("minute")));
    add(std::string(BucketName::OfThrottle(domain, out)));
    for (const std::string& key : parts) {
      BucketName pattern(out, domain);
      pattern.AddPattern(key);
      add(std::string(pattern.OfLimit(0)));
      for (const std::string& value : parts) {
        add(Rule(domain, {{key, value}}));
        add(Rule(domain, {{key, value}}, 1));
        add(Rule(domain, {{key, value}, {"a", "a"}}));
      }
    }
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(made));
}

}  // namespace
}  // namespace headgate::store
