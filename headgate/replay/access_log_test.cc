#include "headgate/replay/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::replay {
namespace access_log_test {

using ::testing::Optional;

// 2026-11-25T10:13:55Z, by `date -u -d 2026-11-25T10:13:55Z +%s`.
constexpr int64_t kSeconds = 1'795'601'635;
constexpr base::Instant At(int64_t nanos) {
  return base::Instant::FromNanos(kSeconds * 1'000'000'000 + nanos);
}

struct Read {
  base::Instant at;
  std::string client;
  bool operator==(const Read&) const = default;
};

std::optional<Read> ReadLine(std::string_view place, std::string_view line) {
  AccessLogReader reader(*ClientPlace::Parse(place));
  const auto request = reader.Read(line);
  if (!request) return std::nullopt;
  return Read{request->at, std::string(request->client)};
}

TEST(LogTime, HasThreeForms) {
  EXPECT_THAT(ParseLogTime("25/Nov/2026:10:13:55 +0000"), Optional(At(0)));
  EXPECT_THAT(ParseLogTime("25/Nov/2026:12:13:55 +0200"), Optional(At(0)));
  EXPECT_THAT(ParseLogTime("2026-11-25T10:13:55Z"), Optional(At(0)));
  EXPECT_THAT(ParseLogTime("2026-11-25T10:13:55.250Z"), Optional(At(250'000'000)));
  EXPECT_THAT(ParseLogTime("2026-11-25T05:13:55-05:00"), Optional(At(0)));
  EXPECT_THAT(ParseLogTime("1795601635"), Optional(At(0)));
  EXPECT_THAT(ParseLogTime("1795601635.123"), Optional(At(123'000'000)));
  EXPECT_THAT(ParseLogTime("1795601635123"), Optional(At(123'000'000)));
  EXPECT_THAT(ParseLogTime("1795601635.1234567894"), Optional(At(123'456'789)));
}

TEST(LogTime, NothingElseIsOne) {
  for (const std::string_view text :
       {"", "-", "200", "512", "0.004", "25/Nov/2026", "1795601635.", "1795601635.x",
        "99999999999999999999", "infinite-future", "infinite-past", "1969-12-31T23:59:59Z"}) {
    EXPECT_EQ(ParseLogTime(text), std::nullopt) << text;
  }
}

TEST(AccessLog, WordsAreBetweenSpacesQuotesAndBrackets) {
  constexpr std::string_view kLine =
      R"(10.0.0.7 - bob [25/Nov/2026:10:13:55 +0000] "GET /a b HTTP/1.1" 200 512 "-" "x \" y" "alice")";
  EXPECT_THAT(ReadLine("1", kLine), Optional(Read{At(0), "10.0.0.7"}));
  EXPECT_THAT(ReadLine("2", kLine), Optional(Read{At(0), ""}));
  EXPECT_THAT(ReadLine("3", kLine), Optional(Read{At(0), "bob"}));
  EXPECT_THAT(ReadLine("5", kLine), Optional(Read{At(0), "GET /a b HTTP/1.1"}));
  EXPECT_THAT(ReadLine("-1", kLine), Optional(Read{At(0), "alice"}));
  EXPECT_THAT(ReadLine("-2", kLine), Optional(Read{At(0), R"(x \" y)"}));
  EXPECT_THAT(ReadLine("10", kLine), Optional(Read{At(0), "alice"}));
  EXPECT_EQ(ReadLine("11", kLine), std::nullopt);
  EXPECT_EQ(ReadLine("-11", kLine), std::nullopt);
}

TEST(AccessLog, TheFirstTimeCounts) {
  EXPECT_THAT(ReadLine("2", "1795601635.5 alice 1795601636.5\r\n"),
              Optional(Read{At(500'000'000), "alice"}));
  EXPECT_EQ(ReadLine("1", "alice GET /a"), std::nullopt);
  EXPECT_EQ(ReadLine("1", ""), std::nullopt);
  EXPECT_EQ(ReadLine("1", "   \t "), std::nullopt);
}

TEST(AccessLog, ALineThatWasCutOffIsReadAsFarAsItGoes) {
  EXPECT_THAT(ReadLine("2", "1795601635 \"alic"), Optional(Read{At(0), "alic"}));
  EXPECT_THAT(ReadLine("2", "1795601635 \""), Optional(Read{At(0), ""}));
  EXPECT_THAT(ReadLine("2", "1795601635 \"a\\"), Optional(Read{At(0), "a\\"}));
  EXPECT_EQ(ReadLine("1", "a [25/Nov/2026:10:1"), std::nullopt);
}

TEST(AccessLog, JsonHasTheClientByName) {
  EXPECT_THAT(ReadLine("client_id", R"({"time":"2026-11-25T10:13:55Z","client_id":"alice"})"),
              Optional(Read{At(0), "alice"}));
  EXPECT_THAT(ReadLine("id", R"({"id":7,"msec":1795601635.5})"),
              Optional(Read{At(500'000'000), "7"}));
  EXPECT_THAT(ReadLine("id", R"({"id":null,"ts":1795601635})"), Optional(Read{At(0), ""}));
  EXPECT_THAT(ReadLine("id", R"({"id":"a","time":12,"time_local":"25/Nov/2026:10:13:55 +0000"})"),
              Optional(Read{At(0), "a"}));
  EXPECT_THAT(ReadLine("id", R"({"id":{"b":[1],"a":0.5},"time":"2026-11-25T10:13:55Z"})"),
              Optional(Read{At(0), R"({"b":[1],"a":0.5})"}));
  for (const std::string_view line : {R"({"time":"2026-11-25T10:13:55Z"})", R"({"id":"a"})",
                                      R"(["id"])", R"({"id")", "id 1795601635", ""}) {
    EXPECT_EQ(ReadLine("id", line), std::nullopt) << line;
  }
}

TEST(AccessLog, DeepAndLongLinesAreNotRead) {
  EXPECT_EQ(ReadLine("id", R"({"time":"2026-11-25T10:13:55Z","id":)" + std::string(30'000, '[')),
            std::nullopt);
  EXPECT_EQ(ReadLine("1", "a 1795601635 " + std::string(kLogLineBytesMax, 'x')), std::nullopt);
}

TEST(ClientPlace, IsANumberOrAName) {
  EXPECT_EQ(ClientPlace::Parse("3")->word, 3);
  EXPECT_EQ(ClientPlace::Parse("-2")->word, -2);
  EXPECT_EQ(ClientPlace::Parse("client_id")->member, "client_id");
  EXPECT_EQ(ClientPlace::Parse("3rd")->member, "3rd");
  for (const std::string_view text : {"", "0"})
    EXPECT_EQ(ClientPlace::Parse(text).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace access_log_test
}  // namespace headgate::replay
