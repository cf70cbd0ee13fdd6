#include "headgate/wire/spop.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace headgate::wire {
namespace spop_test {

TEST(SpopVarint, IsOneByteBelow240) {
  std::string out;
  AppendSpopVarint(239, out);
  EXPECT_EQ(out, "\xef");
  out.clear();
  AppendSpopVarint(240, out);
  EXPECT_EQ(out, std::string("\xf0\x00", 2));
  out.clear();
  // HAProxy's documentation: 2288 to 264431 take three bytes.
  AppendSpopVarint(2287, out);
  EXPECT_EQ(out.size(), 2u);
  out.clear();
  AppendSpopVarint(2288, out);
  EXPECT_EQ(out, std::string("\xf0\x80\x00", 3));
}

TEST(SpopVarint, ReadsWhatItWrites) {
  for (uint64_t base = 1; base != 0; base <<= 1) {
    for (const uint64_t value : {base - 1, base, base + 239, ~base}) {
      std::string out;
      AppendSpopVarint(value, out);
      std::string_view rest = out;
      ASSERT_EQ(TakeSpopVarint(rest), value);
      EXPECT_TRUE(rest.empty());
      rest = std::string_view(out).substr(0, out.size() - 1);
      EXPECT_FALSE(TakeSpopVarint(rest));
    }
  }
}

TEST(SpopVarint, RefusesMoreThan64Bits) {
  std::string_view bytes("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_FALSE(TakeSpopVarint(bytes));
}

TEST(SpopValue, ReadsEveryType) {
  std::string_view bytes(
      "\x00"
      "\x11"
      "\x01"
      "\x03\x07"
      "\x06\xc0\x00\x02\x01"
      "\x07\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
      "\x08\x02hi"
      "\x09\x01\x00",
      1 + 1 + 1 + 2 + 5 + 17 + 4 + 3);
  using Kind = SpopValue::Kind;
  EXPECT_EQ(TakeSpopValue(bytes)->kind, Kind::kNull);
  EXPECT_TRUE(TakeSpopValue(bytes)->truth);
  EXPECT_FALSE(TakeSpopValue(bytes)->truth);
  EXPECT_EQ(TakeSpopValue(bytes)->number, 7);
  EXPECT_EQ(base::ToString(TakeSpopValue(bytes)->ip), "192.0.2.1");
  EXPECT_EQ(base::ToString(TakeSpopValue(bytes)->ip), "2001:db8::1");
  EXPECT_EQ(TakeSpopValue(bytes)->text, "hi");
  EXPECT_EQ(TakeSpopValue(bytes)->text, std::string_view("\0", 1));
  EXPECT_TRUE(bytes.empty());
  EXPECT_FALSE(TakeSpopValue(bytes));
}

TEST(SpopValue, RefusesATextThatIsTooShort) {
  std::string_view bytes("\x08\x05hi");
  EXPECT_FALSE(TakeSpopValue(bytes));
  bytes = "\x0a";
  EXPECT_FALSE(TakeSpopValue(bytes));
}

TEST(SpopFrame, ReadsWhatItWrites) {
  std::string out = "before";
  const size_t begin = BeginSpopFrame(SpopType::kAck, 300, 7, out);
  AppendSpopSetVariable("status", out);
  AppendSpopNumberValue(429, out);
  EndSpopFrame(begin, out);
  const std::string_view bytes = std::string_view(out).substr(6);
  EXPECT_EQ(bytes.substr(0, 4),
            std::string(3, '\0') + std::string(1, static_cast<char>(bytes.size() - 4)))
      << "the length does not count itself";
  const auto frame = ParseSpopFrame(bytes.substr(4));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->type, SpopType::kAck);
  EXPECT_TRUE(frame->complete);
  EXPECT_EQ(frame->stream_id, 300u);
  EXPECT_EQ(frame->frame_id, 7u);
  EXPECT_EQ(frame->payload.substr(0, 10), std::string_view("\x01\x03\x02\x06status", 10));
}

}  // namespace spop_test
}  // namespace headgate::wire
