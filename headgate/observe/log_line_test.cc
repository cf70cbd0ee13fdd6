#include "headgate/observe/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "headgate/base/random.h"
#include "headgate/base/utf8.h"

namespace headgate::observe {
namespace log_line_test {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::EndsWith;

constexpr base::WallTime kTime = base::WallTime::FromNanos(1'790'000'000'123'000'000);

std::string Text(std::initializer_list<Field> fields, const LogOptions& options = {}) {
  return LogLine(options, kTime, Level::kInfo, "e", {fields.begin(), fields.size()});
}

std::string Json(std::initializer_list<Field> fields, LogOptions options = {}) {
  options.format = LogFormat::kJson;
  return Text(fields, options);
}

TEST(LogLine, IsTimeLevelEventAndFields) {
  const Field fields[] = {{"file", "edge rules.yaml"},
                          {"problems", uint64_t{2}},
                          {"kept", true},
                          {"delta", int64_t{-3}}};
  EXPECT_EQ(LogLine({}, kTime, Level::kWarning, "rules.refused", fields),
            "2026-09-21T14:13:20.123Z warning rules.refused file=\"edge rules.yaml\" problems=2 "
            "kept=true delta=-3");
  EXPECT_EQ(LogLine({.format = LogFormat::kJson}, kTime, Level::kWarning, "rules.refused", fields),
            R"({"time":"2026-09-21T14:13:20.123Z","level":"warning","event":"rules.refused",)"
            R"("file":"edge rules.yaml","problems":2,"kept":true,"delta":-3})");
}

TEST(LogLine, TextThatCouldBeMisreadIsQuoted) {
  EXPECT_THAT(
      Text({{"a", "two words"},
            {"b", ""},
            {"c", "x=y"},
            {"d", "say \"hi\" \\"},
            {"e", "line\nline\x1b[2J\xff"}}),
      EndsWith(R"(info e a="two words" b="" c="x=y" d="say \"hi\" \\" e="line\nline\x1b[2J\xff")"));
}

TEST(LogLine, JsonEscapesWhatTextEscapes) {
  EXPECT_THAT(Json({{"a", "say \"hi\" \\"}, {"b", "line\nline\x1b[2J\xff"}, {"c", "\u009b"}}),
              EndsWith(R"("a":"say \"hi\" \\","b":"line\nline\u001b[2J)"
                       "\xEF\xBF\xBD"
                       R"(","c":"\u009b"})"));
}

TEST(LogLine, LongValuesAreCutAtAWholeCharacter) {
  const std::string text = std::string(1'023, 'x') + "äx";
  EXPECT_THAT(Text({{"a", text}}), EndsWith("a=\"" + std::string(1'023, 'x') + "…\""));
  EXPECT_THAT(Json({{"a", text}}), EndsWith("\"a\":\"" + std::string(1'023, 'x') + "…\"}"));
  const std::string fits(1'024, 'x');
  EXPECT_THAT(Text({{"a", fits}}), EndsWith("a=" + fits));
  EXPECT_THAT(Json({{"a", fits}}), EndsWith("\"" + fits + "\"}"));
}

TEST(LogLine, DurationsAreSecondsToTheLastDigit) {
  const Field fields[] = {{"a", base::Duration(1)},
                          {"b", base::Duration(1500ms)},
                          {"c", base::Duration(-20s)},
                          {"d", base::Duration(0)}};
  EXPECT_THAT(LogLine({}, kTime, Level::kInfo, "e", fields),
              EndsWith("a=0.000000001s b=1.5s c=-20s d=0s"));
  EXPECT_THAT(LogLine({.format = LogFormat::kJson}, kTime, Level::kInfo, "e", fields),
              EndsWith(R"("a":"0.000000001s","b":"1.5s","c":"-20s","d":"0s"})"));
}

TEST(LogLine, KeysOfClientsAreHashedUnlessAskedFor) {
  const Field field{"key", ClientText{"user 123"}};
  EXPECT_THAT(Text({field}), ::testing::ContainsRegex(" key=#[0-9a-f]{16}$"));
  EXPECT_THAT(Json({field}), ::testing::ContainsRegex("\"key\":\"#[0-9a-f]{16}\"}$"));
  EXPECT_EQ(json::parse(Json({field}))["key"], Text({field}).substr(Text({field}).find('#')));
  EXPECT_THAT(Text({field}, {.client_keys = ClientKeys::kPlain}), EndsWith("key=\"user 123\""));
  EXPECT_EQ(json::parse(Json({field}, {.client_keys = ClientKeys::kPlain}))["key"], "user 123");
}

bool IsPrintable(std::string_view line) {
  while (!line.empty()) {
    const base::Utf8Prefix first = base::FirstUtf8(line);
    const auto byte = static_cast<unsigned char>(line[0]);
    if (!first.well_formed || byte < 0x20 || byte == 0x7f || base::BeginsWithC1Control(line))
      return false;
    line.remove_prefix(first.bytes);
  }
  return true;
}

// Whatever bytes a client sends, an event is a single line of valid UTF-8 without control
// characters, and its JSON form parses.
TEST(LogLine, HostileBytesStayInTheirValue) {
  base::Random random(20'261'122);
  for (int i = 0; i < 20'000; ++i) {
    std::string value;
    for (uint64_t bytes = random.Below(40); bytes > 0; --bytes) {
      // Mostly characters that separate, end or escape.
      constexpr std::string_view kHostile("\"\\\n\r\0{}=,: \x1b\x7f\xc2\x9b\xe2\x80\xff\xf0\x9f",
                                          20);
      value.push_back(random.Below(2) == 0 ? kHostile[random.Below(kHostile.size())]
                                           : static_cast<char>(random.Below(256)));
    }
    const Field fields[] = {
        {"a", std::string_view(value)}, {"b", ClientText{value}}, {"end", uint64_t{7}}};
    const LogOptions text{.client_keys = ClientKeys::kPlain};
    const LogOptions object{.format = LogFormat::kJson, .client_keys = ClientKeys::kPlain};
    ASSERT_TRUE(IsPrintable(LogLine(text, kTime, Level::kInfo, "e", fields))) << "step " << i;
    const std::string line = LogLine(object, kTime, Level::kInfo, "e", fields);
    ASSERT_TRUE(IsPrintable(line)) << "step " << i << ": " << line;
    const json parsed = json::parse(line, nullptr, false);
    ASSERT_TRUE(parsed.is_object()) << "step " << i << ": " << line;
    ASSERT_EQ(parsed.size(), 6u) << line;
    ASSERT_EQ(parsed["end"], 7) << line;
    ASSERT_EQ(parsed["a"], parsed["b"]) << line;
  }
}

TEST(Level, NamesAreReadAsTheyAreWritten) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    EXPECT_EQ(LevelByName(Name(level)), level);
  }
  EXPECT_EQ(LevelByName("loud"), std::nullopt);
}

}  // namespace log_line_test
}  // namespace headgate::observe
