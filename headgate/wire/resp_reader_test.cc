#include "headgate/wire/resp_reader.h"

#include <limits>

#include "headgate/wire/in_pieces.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::wire {
namespace resp_reader_test {

using ::testing::ElementsAre;
using ::testing::StartsWith;

struct Reading {
  std::vector<std::string> values;
  std::string error;
  size_t left = 0;
  bool operator==(const Reading&) const = default;
};

Reading ReadInPieces(const std::string& stream, const std::vector<size_t>& ends,
                     const ReplyBounds& bounds = {}) {
  RespReader reader(bounds);
  Reading reading;
  reading.left = FeedInPieces(stream, ends, [&](std::string& pending) {
    RespReader::Step step;
    do {
      size_t consumed = 0;
      step = reader.Read(pending, consumed);
      pending.erase(0, consumed);
      if (step == RespReader::Step::kValue) reading.values.push_back(reader.value().ToString());
    } while (step == RespReader::Step::kValue);
    reading.error = std::string(reader.error());
    return reading.error.empty();
  });
  if (!reading.error.empty()) reading.left = 0;
  return reading;
}

Reading Read(const std::string& stream, const ReplyBounds& bounds = {}) {
  return ReadInPieces(stream, {}, bounds);
}

TEST(RespReader, ReadsEveryTypeOfBothVersions) {
  const std::pair<std::string, std::string> cases[] = {
      {"+OK\r\n", "OK"},
      {"-ERR no\r\n", "-ERR no"},
      {":-9223372036854775808\r\n", "-9223372036854775808"},
      {":+7\r\n", "7"},
      {"$5\r\na\r\nbc\r\n", "\"a\r\nbc\""},
      {"$0\r\n\r\n", "\"\""},
      {"$-1\r\n", "nil"},
      {"*-1\r\n", "nil"},
      {"_\r\n", "nil"},
      {"#t\r\n", "true"},
      {"#f\r\n", "false"},
      {",-1.5e3\r\n", "-1.5e3"},
      {",inf\r\n", "inf"},
      {"(123456789012345678901234567890\r\n", "123456789012345678901234567890"},
      {"=7\r\ntxt:abc\r\n", "\"abc\""},
      {"!7\r\nERR bad\r\n", "-ERR bad"},
      {"*0\r\n", "[]"},
      {"*3\r\n:1\r\n*1\r\n+a\r\n$-1\r\n", "[1, [a], nil]"},
      {"~2\r\n:1\r\n:2\r\n", "[1, 2]"},
      {">2\r\n+message\r\n:2\r\n", "[message, 2]"},
      {"%2\r\n+a\r\n:1\r\n+b\r\n*0\r\n", "{a: 1, b: []}"},
  };
  for (const auto& [stream, text] : cases) {
    const Reading reading = Read(stream);
    EXPECT_THAT(reading.values, ElementsAre(text)) << reading.error;
    EXPECT_EQ(reading.left, 0u);
  }
}

TEST(RespReader, AttributesAreReadAndDropped) {
  EXPECT_THAT(Read("|1\r\n+ttl\r\n:3\r\n:5\r\n").values, ElementsAre("5"));
  EXPECT_THAT(Read("*2\r\n|1\r\n+a\r\n*1\r\n:1\r\n:5\r\n|0\r\n:6\r\n").values,
              ElementsAre("[5, 6]"));
}

TEST(RespReader, ReadsTheSameHoweverTheBytesArrive) {
  const std::string streams[] = {
      "*3\r\n:1\r\n%1\r\n$3\r\na\r\n\r\n=5\r\ntxt:x\r\n_\r\n|1\r\n+a\r\n+b\r\n+OK\r\n$-1\r\n:12",
      "+OK\r\n*2\r\n:1\r\n$2\r\nabc\r\n",
      "+a\rb\r\n:1x\r\n",
  };
  for (const std::string& stream : streams) {
    const Reading whole = Read(stream);
    std::vector<size_t> each;
    for (size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(ReadInPieces(stream, {i}).values, whole.values) << "split at " << i;
      EXPECT_EQ(ReadInPieces(stream, {i}).error, whole.error) << "split at " << i;
      each.push_back(i);
    }
    EXPECT_EQ(ReadInPieces(stream, each).values, whole.values);
  }
}

TEST(RespReader, RefusesWhatNoServerSends) {
  const std::string streams[] = {
      ":\r\n",        ":1 \r\n",         ":+-1\r\n",
      "#x\r\n",       "_x\r\n",          "$x\r\n",
      "$-2\r\n",      "!-1\r\n",         "*-2\r\n",
      "%-1\r\n",      "~-1\r\n",         "$2\r\nabcd",
      "=2\r\nab\r\n", "=5\r\nabcde\r\n", "\r\n",
      "@\r\n",        "$?\r\n",          "*?\r\n",
      ",\r\n",        "(1.5\r\n",        ":99999999999999999999\r\n",
  };
  for (const std::string& stream : streams) EXPECT_NE(Read(stream).error, "") << stream;
}

TEST(RespReader, EveryBoundHolds) {
  const ReplyBounds bounds{
      .depth_max = 2, .values_max = 4, .bulk_bytes_max = 3, .line_bytes_max = 4};
  EXPECT_THAT(Read("*1\r\n*1\r\n:1\r\n", bounds).values, ElementsAre("[[1]]"));
  EXPECT_THAT(Read("*1\r\n*1\r\n*1\r\n", bounds).error, StartsWith("values are nested deeper"));
  EXPECT_THAT(Read("*3\r\n:1\r\n:2\r\n:3\r\n", bounds).values, ElementsAre("[1, 2, 3]"));
  EXPECT_THAT(Read("*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", bounds).error, StartsWith("more values"));
  EXPECT_THAT(Read("*5\r\n", bounds).error, StartsWith("bad count"));
  EXPECT_THAT(Read("$3\r\nabc\r\n", bounds).values, ElementsAre("\"abc\""));
  EXPECT_THAT(Read("$4\r\n", bounds).error, StartsWith("bad length"));
  EXPECT_THAT(Read("+abc\r\n", bounds).values, ElementsAre("abc"));
  EXPECT_THAT(Read("+abcdefg", bounds).error, StartsWith("a line is longer"));
}

TEST(RespReader, AnAnnouncedCountReservesNoMemory) {
  EXPECT_EQ(Read("*1048576\r\n*1048576\r\n*1048576\r\n:1\r\n").error, "");
}

// The reader reads back what the writer writes.
TEST(RespWriter, WritesWhatTheReaderReads) {
  for (const RespVersion version : {RespVersion::k2, RespVersion::k3}) {
    std::string out;
    RespWriter writer(out, version);
    writer.Map(2);
    writer.Bulk("allowed");
    writer.Boolean(true);
    writer.Bulk("list");
    writer.Array(4);
    writer.Integer(std::numeric_limits<int64_t>::min());
    writer.Null();
    writer.Verbatim("txt", "a\r\nb");
    writer.Integer(9);
    writer.Error("ERR a\r\nb");
    writer.Simple("OK");
    EXPECT_THAT(
        Read(out).values,
        ElementsAre(
            version == RespVersion::k2
                ? "[\"allowed\", 1, \"list\", [-9223372036854775808, nil, \"a\r\nb\", 9]]"
                : "{\"allowed\": true, \"list\": [-9223372036854775808, nil, \"a\r\nb\", 9]}",
            "-ERR a  b", "OK"));
  }
}

TEST(RespWriter, WritesTheBytesOfTheProtocol) {
  std::string out;
  RespWriter two(out, RespVersion::k2);
  two.Array(2);
  two.Integer(-10);
  two.Null();
  two.Map(1);
  two.Boolean(false);
  two.Verbatim("txt", "x");
  EXPECT_EQ(out, "*2\r\n:-10\r\n$-1\r\n*2\r\n:0\r\n$1\r\nx\r\n");
  out.clear();
  RespWriter three(out, RespVersion::k3);
  three.Map(1);
  three.Null();
  three.Boolean(false);
  three.Verbatim("txt", "x");
  EXPECT_EQ(out, "%1\r\n_\r\n#f\r\n=5\r\ntxt:x\r\n");
}

}  // namespace resp_reader_test
}  // namespace headgate::wire
