#include "headgate/replay/log_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "headgate/replay/access_log.h"

namespace headgate::replay {
namespace log_lines_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Read {
  std::vector<std::string> lines;
  std::string unpacker;
};

Read LinesOf(const std::string& text) {
  std::istringstream in(text);
  Read read;
  read.unpacker = ForEachLine(in, [&](std::string_view line) { read.lines.emplace_back(line); });
  return read;
}

TEST(LogLines, TheLastOneNeedsNoEnd) {
  EXPECT_THAT(LinesOf("").lines, IsEmpty());
  EXPECT_THAT(LinesOf("a\n\nb").lines, ElementsAre("a", "", "b"));
  EXPECT_THAT(LinesOf("a\nb\n").lines, ElementsAre("a", "b"));
}

TEST(LogLines, AByteOrderMarkIsLeftOut) {
  EXPECT_THAT(LinesOf("\xef\xbb\xbf"
                      "a\n\xef\xbb\xbf")
                  .lines,
              ElementsAre("a", "\xef\xbb\xbf"));
}

TEST(LogLines, LongOnesAreCutOffAndStillTooLong) {
  const Read read = LinesOf("a\n" + std::string(300'000, 'x') + "\nb\n");
  ASSERT_EQ(read.lines.size(), 3u);
  EXPECT_GT(read.lines[1].size(), kLogLineBytesMax);
  EXPECT_LT(read.lines[1].size(), 300'000u);
  EXPECT_EQ(read.lines[2], "b");
}

TEST(LogLines, ThereAreNoneInACompressedFile) {
  for (const auto& [beginning, unpacker] :
       {std::pair("\x1f\x8b\x08\n", "zcat"), std::pair("\x28\xb5\x2f\xfd\n", "zstdcat"),
        std::pair("\xfd\x37zXZ", "xzcat"), std::pair("BZh91AY&SY", "bzcat")}) {
    const Read read = LinesOf(std::string(beginning) + "\nx\n");
    EXPECT_EQ(read.unpacker, unpacker);
    EXPECT_THAT(read.lines, IsEmpty());
  }
  EXPECT_EQ(LinesOf("BZhappy\n").unpacker, "");
}

}  // namespace log_lines_test
}  // namespace headgate::replay
