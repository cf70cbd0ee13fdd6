#include "headgate/wire/resp_parser.h"

#include <fmt/format.h>

#include "headgate/wire/in_pieces.h"

namespace headgate::wire {
namespace resp_parser_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

// The result of parsing a stream: its commands, and the error that ended it.
struct Reading {
  std::vector<Words> commands;
  std::string error;
  size_t left = 0;  // bytes of an incomplete command
  bool operator==(const Reading&) const = default;
};

Reading ReadInPieces(const std::string& stream, const std::vector<size_t>& ends,
                     const RespBounds& bounds = {}) {
  RespParser parser(bounds);
  Reading reading;
  reading.left = FeedInPieces(stream, ends, [&](std::string& pending) {
    while (parser.Parse(pending) == RespParser::Step::kCommand) {
      Words words;
      for (size_t a = 0; a < parser.size(); ++a) words.emplace_back(parser[a]);
      reading.commands.push_back(std::move(words));
      pending.erase(0, parser.consumed_bytes());
    }
    reading.error = std::string(parser.error());
    return reading.error.empty();
  });
  if (!reading.error.empty()) reading.left = 0;
  return reading;
}

Reading Read(const std::string& stream, const RespBounds& bounds = {}) {
  return ReadInPieces(stream, {}, bounds);
}
std::string ErrorOf(const std::string& stream, const RespBounds& bounds = {}) {
  return Read(stream, bounds).error;
}

TEST(RespParser, ReadsAnArrayOfBulks) {
  const Reading reading = Read("*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$5\r\nhello\r\n");
  EXPECT_THAT(reading.commands, ElementsAre(Words{"ECHO", "", "hello"}));
  EXPECT_EQ(reading.left, 0u);
}

TEST(RespParser, ArgumentsMayHoldAnyByte) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  EXPECT_THAT(Read("*1\r\n$256\r\n" + all + "\r\n").commands, ElementsAre(Words{all}));
}

TEST(RespParser, ReadsOneCommandAfterAnother) {
  EXPECT_THAT(Read("*1\r\n$4\r\nPING\r\nPING a\r\n*1\r\n$4\r\nQUIT\r\n").commands,
              ElementsAre(Words{"PING"}, Words{"PING", "a"}, Words{"QUIT"}));
}

TEST(RespParser, AnEmptyCommandAsksForNothing) {
  EXPECT_THAT(Read("*0\r\n*-1\r\n\r\n\n  \r\nPING\r\n").commands,
              ElementsAre(Words{}, Words{}, Words{}, Words{}, Words{}, Words{"PING"}));
}

TEST(RespParser, AnInlineCommandIsALineOfWords) {
  EXPECT_THAT(Read("PING\n").commands, ElementsAre(Words{"PING"}));
  EXPECT_THAT(Read(" \tCL.THROTTLE  key\v 1\t2 3 \r\n").commands,
              ElementsAre(Words{"CL.THROTTLE", "key\v", "1", "2", "3"}));
}

TEST(RespParser, QuotesWorkAsOnTheCommandLineOfRedisCli) {
  const std::pair<std::string, Words> cases[] = {
      {R"(a "b c" d)", {"a", "b c", "d"}},
      {R"("" '')", {"", ""}},
      {R"("\n\r\t\b\a\\\"\q")", {"\n\r\t\b\a\\\"q"}},
      {R"("\x41\xff\x0g")", {"A\xffx0g"}},
      {R"('it\'s' 'a\nb')", {"it's", "a\\nb"}},
      {R"(fo"o b"ar)", {}},
      {R"(fo"o b" ar)", {"foo b", "ar"}},
      {R"("it's")", {"it's"}},
      {R"(a\nb)", {"a\\nb"}},
  };
  for (const auto& [line, words] : cases) {
    const Reading reading = Read(line + "\r\n");
    if (words.empty()) {
      EXPECT_EQ(reading.error, "Protocol error: unbalanced quotes in request") << line;
    } else {
      EXPECT_THAT(reading.commands, ElementsAre(words)) << line;
    }
  }
}

TEST(RespParser, ANulByteInALineIsAByteLikeAnother) {
  const std::string line("a\0b \"c\0d\"\r\n", 11);
  EXPECT_THAT(Read(line).commands,
              ElementsAre(Words{std::string("a\0b", 3), std::string("c\0d", 3)}));
}

TEST(RespParser, ErrorsHaveTheTextsOfRedis) {
  const std::string digits_64k(65537, '1');
  const std::pair<std::string, std::string> cases[] = {
      {"*x\r\n", "Protocol error: invalid multibulk length"},
      {"*\r\n", "Protocol error: invalid multibulk length"},
      {"*01\r\n", "Protocol error: invalid multibulk length"},
      {"*+1\r\n", "Protocol error: invalid multibulk length"},
      {"*1 \r\n", "Protocol error: invalid multibulk length"},
      {"*2147483648\r\n", "Protocol error: invalid multibulk length"},
      {"*99999999999999999999\r\n", "Protocol error: invalid multibulk length"},
      {"*8193\r\n", "Protocol error: invalid multibulk length"},
      {"*1\r\n+4\r\n", "Protocol error: expected '$', got '+'"},
      {"*1\r\n:\r\n", "Protocol error: expected '$', got ':'"},
      {"*1\r\n\r\n", "Protocol error: expected '$', got '\r'"},
      {"*1\r\n$x\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$00\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$-0\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$524289\r\n", "Protocol error: invalid bulk length"},
      {"*1\r\n$99999999999999999999\r\n", "Protocol error: invalid bulk length"},
      {"*" + digits_64k, "Protocol error: too big mbulk count string"},
      {"*1\r\n$" + digits_64k, "Protocol error: too big bulk count string"},
      {std::string(65537, 'a'), "Protocol error: too big inline request"},
      {"GET \"a\r\n", "Protocol error: unbalanced quotes in request"},
      {"GET 'a\r\n", "Protocol error: unbalanced quotes in request"},
      {"GET \"a\"b\r\n", "Protocol error: unbalanced quotes in request"},
      {"GET \"a\\\r\n", "Protocol error: unbalanced quotes in request"},
  };
  for (const auto& [stream, error] : cases)
    EXPECT_EQ(ErrorOf(stream), error) << stream.substr(0, 40);
}

TEST(RespParser, LengthsAtTheirBoundsPass) {
  const RespBounds bounds{
      .args_max = 2, .bulk_bytes_max = 3, .inline_bytes_max = 6, .command_bytes_max = 100};
  EXPECT_THAT(Read("*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n", bounds).commands,
              ElementsAre(Words{"abc", "def"}));
  EXPECT_EQ(ErrorOf("*3\r\n", bounds), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$4\r\n", bounds), "Protocol error: invalid bulk length");
  EXPECT_THAT(Read("ab cd\r\n", bounds).commands, ElementsAre(Words{"ab", "cd"}));
  EXPECT_EQ(ErrorOf("ab cde\r\n", bounds), "Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("a b c\n", bounds), "Protocol error: too big inline request");
}

TEST(RespParser, AWholeCommandHasABoundToo) {
  const RespBounds bounds{.command_bytes_max = 32};
  EXPECT_EQ(ErrorOf("*2\r\n$10\r\n0123456789\r\n$10\r\n", bounds),
            "Protocol error: too big request");
  EXPECT_EQ(ErrorOf("*2\r\n$10\r\n0123456789\r\n$1\r\n1\r\n", bounds), "");
}

TEST(RespParser, BeforeALoginTheErrorsSayThatOneWouldHelp) {
  const RespBounds bounds{.args_max = 10, .bulk_bytes_max = 16384, .unauthenticated = true};
  EXPECT_EQ(ErrorOf("*100\r\n", bounds), "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(ErrorOf("*2147483647\r\n", bounds), "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(ErrorOf("*2147483648\r\n", bounds), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$100000000\r\n", bounds), "Protocol error: unauthenticated bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$16384\r\n", bounds), "");
}

TEST(RespParser, ReadsTheSameHoweverTheBytesArrive) {
  const std::string streams[] = {
      "*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$12\r\nhello\r\nworld\r\n*0\r\nPING \"a "
      "b\"\r\n\r\n*1\r\n$4\r\nQUIT\r\n",
      "PING\nPING 'a\\'b'\r\n*2\r\n$1\r\na\r\n$x\r\n",
      "*1\r\n$4\r\nPING\r\n*-7\r\n*1\r\n+4\r\n",
      "PING\r\nGET \"a\r\nPING\r\n",
      "*1\r\r$2\rxabyy*1\r\n$1\r\na\r\n*2\r\n$3\r\nab",
  };
  for (const std::string& stream : streams) {
    const Reading whole = Read(stream);
    std::vector<size_t> each;
    for (size_t i = 0; i < stream.size(); ++i) {
      EXPECT_EQ(ReadInPieces(stream, {i}), whole) << "split at " << i;
      each.push_back(i);
    }
    EXPECT_EQ(ReadInPieces(stream, each), whole);
  }
}

// A whole command of short arguments is read in one pass; one that arrives byte by byte is read by
// the steps that also read long ones. Both must agree on every spelling of a length.
TEST(RespParser, ReadsAWholeCommandAsTheOneThatArrivesByteByByte) {
  const std::string numbers[] = {
      "",   "0",    "1",  "2",  "3",   "9",   "10",  "12", "98",         "99",
      "00", "01",   "02", "+1", "-0",  "-1",  " 1",  "1 ", "1\t",        "1\n",
      "x",  "1x",   "x1", "0x", "100", "101", "010", "$",  "2147483648", "99999999999999999999",
      "*1", "\x31",
  };
  const RespBounds bounds[] = {
      {},
      {.args_max = 2, .bulk_bytes_max = 98, .unauthenticated = true},
      {.args_max = 1, .bulk_bytes_max = 99},
      {.bulk_bytes_max = 9, .command_bytes_max = 24},
      {.command_bytes_max = 25},
      {.command_bytes_max = 99},
  };
  const std::string bytes(101, 'a');
  const auto check = [&](const std::string& stream) {
    std::vector<size_t> each;
    for (size_t i = 1; i < stream.size(); ++i) each.push_back(i);
    for (const RespBounds& bound : bounds) {
      const Reading byte_by_byte = ReadInPieces(stream, each, bound);
      EXPECT_EQ(Read(stream, bound), byte_by_byte) << stream;
      for (const size_t cut : each) {
        EXPECT_EQ(ReadInPieces(stream, {cut}, bound), byte_by_byte)
            << stream << " cut at " << cut << ", command_bytes_max " << bound.command_bytes_max;
      }
    }
  };
  for (const std::string& number : numbers) {
    check("*" + number + "\r\n$2\r\nab\r\n$1\r\na\r\nPING\r\n");
    check("*1\r\n$" + number + "\r\nab\r\n*1\r\n$4\r\nping\r\n");
    check("*2\r\n$1\r\na\r\n$" + number + "\r\n" + bytes.substr(0, number.size()) + "\r\n*0\r\n");
    check("*1\r" + number + "$1\rxa" + number + "*1\r\n$1\r\n" + number + "\r\n");
  }
  for (const size_t size : {0u, 1u, 8u, 9u, 10u, 11u, 12u, 85u, 86u, 97u, 98u, 99u, 100u, 101u}) {
    check(fmt::format("*1\r\n${}\r\n{}\r\n*1\r\n$1\r\nx\r\n", size, bytes.substr(0, size)));
  }
  for (const size_t count : {1u, 2u, 3u, 99u, 100u}) {
    std::string stream = fmt::format("*{}\r\n", count);
    for (size_t i = 0; i < count; ++i) stream += "$0\r\n\r\n";
    check(stream + "ping 'a\r\n");
  }
}

// This would take minutes if the parser scanned the argument again for each new byte.
TEST(RespParser, ALargeArgumentMayArriveByteByByte) {
  const std::string stream = "*1\r\n$524288\r\n" + std::string(524288, 'x') + "\r\n";
  RespParser parser;
  for (size_t i = 0; i < stream.size(); ++i) {
    ASSERT_EQ(parser.Parse(std::string_view(stream).substr(0, i)), RespParser::Step::kIncomplete);
  }
  ASSERT_EQ(parser.Parse(stream), RespParser::Step::kCommand);
  EXPECT_EQ(parser[0].size(), 524288u);
}

TEST(RespParser, AnErrorIsFinal) {
  RespParser parser;
  EXPECT_EQ(parser.Parse("*x\r\n"), RespParser::Step::kError);
  EXPECT_EQ(parser.Parse("*1\r\n$4\r\nPING\r\n"), RespParser::Step::kError);
}

TEST(RespParser, NoInputIsNoCommand) { EXPECT_THAT(Read("").commands, IsEmpty()); }

}  // namespace resp_parser_test
}  // namespace headgate::wire
