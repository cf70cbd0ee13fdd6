// Every spelling of a limit means the same, whether its text, its numbers, or nothing of it is
// cached. HG.CHECKM caches nothing, so it answers for comparison.
#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "headgate/front/resp/conversation.h"

namespace headgate::front::resp {
namespace limit_text_test {

using std::string_view_literals::operator""sv;

constexpr std::array kSpellings{
    "15"sv,
    "015"sv,
    "00000015"sv,
    "000000015"sv,
    "+15"sv,
    "00000+15"sv,
    "-15"sv,
    "-0"sv,
    "0"sv,
    "00000000"sv,
    ""sv,
    " 15"sv,
    "15 "sv,
    "1 5"sv,
    "1.5"sv,
    "15."sv,
    "1e1"sv,
    "0x0f"sv,
    "15\0"sv,
    "\0\0\0\0\0\0\0\0"sv,
    "+"sv,
    "++5"sv,
    "99999999"sv,
    "100000000"sv,
    "00000000000000000015"sv,
    "9223372036854775806"sv,
    "150000"sv,
    "15a"sv,
    "1:"sv,
    "/5"sv,
    "9223372036854775807"sv,
    "99999999x"sv,
    "18446744073709551631"sv,
};

// The part of a reply that depends on the limit: five numbers, or the text of the error.
std::string Meaning(std::string reply) {
  for (const std::string_view head :
       {"*2\r\n:0\r\n"sv, "-Cell error: Store error: "sv, "-ERR "sv}) {
    if (reply.starts_with(head)) return reply.substr(head.size());
  }
  return reply;
}

class LimitTexts : public ::testing::Test {
 protected:
  void ExpectTheSameMeaning(std::string_view burst, std::string_view count,
                            std::string_view period) {
    const std::string expected =
        Meaning(client_.Ask({"HG.CHECKM", NextKey(), burst, count, period, "1"}));
    // The first one may cache the limit, and the others find it.
    for (const std::string_view verb : {"CL.THROTTLE", "cl.throttle", "Cl.Throttle"}) {
      EXPECT_EQ(Meaning(client_.Ask({verb, NextKey(), burst, count, period})), expected)
          << fmt::format("'{}' '{}' '{}'", burst, count, period);
    }
    EXPECT_EQ(Meaning(client_.Send(Inline({"CL.THROTTLE", NextKey(), burst, count, period}))),
              expected)
        << fmt::format("'{}' '{}' '{}'", burst, count, period);
    allowed_ += expected.starts_with("*5\r\n:0\r\n") ? 1 : 0;
  }
  // The command as a line, with each byte escaped.
  static std::string Inline(std::initializer_list<std::string_view> words) {
    std::string line;
    for (const std::string_view word : words) {
      line += " \"";
      for (const char c : word) line += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      line += '"';
    }
    return line + "\r\n";
  }
  // A bucket that no command has used.
  std::string_view NextKey() {
    key_ = fmt::format("key {}", ++keys_);
    return key_;
  }

  World world_;
  Conversation client_{world_};
  int keys_ = 0;
  int allowed_ = 0;
  std::string key_;
};

TEST_F(LimitTexts, AllMeanTheSameWithAndWithoutACache) {
  for (int round = 0; round < 2; ++round) {
    for (const std::string_view burst : kSpellings) {
      for (const std::string_view count : kSpellings) {
        for (const std::string_view period : {"15"sv, "015"sv, "+15"sv, "60"sv, "-0"sv, ""sv,
                                              " 15"sv, "\0\0\0\0\0\0\0\0"sv, "00000000"sv})
          ExpectTheSameMeaning(burst, count, period);
      }
    }
    for (const std::string_view period : kSpellings) ExpectTheSameMeaning("15", "15", period);
  }
  EXPECT_GT(allowed_, 500);
}

// More limits than the cache has places, so that they replace each other all the time.
TEST_F(LimitTexts, MeanTheSameWhileLimitsReplaceEachOther) {
  for (int i = 0; i < 6000; ++i) {
    const std::string number = std::to_string(i % 3000);
    const std::string padded = "0000" + number;
    ExpectTheSameMeaning(i % 2 == 0 ? number : padded, i % 3 == 0 ? "7" : "07",
                         i % 5 == 0 ? "+60" : "60");
    if (i % 7 == 0) ExpectTheSameMeaning("60", number, i % 2 == 0 ? "60" : "00000060");
  }
}

}  // namespace limit_text_test
}  // namespace headgate::front::resp
