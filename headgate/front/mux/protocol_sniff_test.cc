#include "headgate/front/mux/protocol_sniff.h"

#include <gtest/gtest.h>

namespace headgate::front::mux {
namespace protocol_sniff_test {

using namespace std::string_view_literals;

std::optional<Protocol> Sniff(std::string_view bytes) { return SniffProtocol(bytes); }

TEST(ProtocolSniff, TellsRespByItsFirstByteOrByALineThatIsNoRequest) {
  EXPECT_EQ(Sniff("*"), Protocol::kResp);
  EXPECT_EQ(Sniff("*1\r\n$4\r\nPING\r\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("PING\r\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("CL.THROTTLE user 15 30 60\r\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("GET key\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("PRINT\r\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("\r\nPING\r\n"), Protocol::kResp);
  EXPECT_EQ(Sniff("\x01\x02"sv), Protocol::kResp);
  EXPECT_EQ(Sniff("\x16\x02"sv), Protocol::kResp);
  EXPECT_EQ(Sniff("  spaces first"), Protocol::kResp);
}

TEST(ProtocolSniff, TellsHttp1ByItsMethodAndPathOrByItsVersion) {
  EXPECT_EQ(Sniff("GET /"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("POST /v1/check HTTP/1.1\r\n"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("\r\nGET / HTTP/1.1\r\n"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("OPTIONS * HTTP/1.1\r\n"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("GET http://host/ HTTP/1.0\n"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("BREW /pot HTTP/1.1\r\n"), Protocol::kHttp1);
  EXPECT_EQ(Sniff("GET x HTTP/9.9\r\n"), Protocol::kHttp1);
}

TEST(ProtocolSniff, TellsHttp2ByItsPrefaceAndTlsByItsRecord) {
  EXPECT_EQ(Sniff("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Protocol::kHttp2);
  EXPECT_EQ(Sniff("\x16\x03\x01"sv), Protocol::kTls);
}

TEST(ProtocolSniff, WaitsWhileTheBytesDoNotTell) {
  for (const std::string_view bytes :
       {""sv, "\r\n"sv, "\x16"sv, "P"sv, "PRI * HTTP/2.0\r\n"sv, "GET"sv, "GET "sv,
        "BREW /pot HTTP/1.1"sv, "CL.THROTTLE user"sv}) {
    EXPECT_EQ(Sniff(bytes), std::nullopt) << bytes;
  }
}

TEST(ProtocolSniff, AnswersTheSameHoweverTheBytesArrive) {
  for (const std::string_view bytes :
       {"POST /v1/check HTTP/1.1\r\n"sv, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"sv,
        "*1\r\n$4\r\nPING\r\n"sv, "PING\r\n"sv, "OPTIONS * HTTP/1.1\r\n"sv, "GET key\r\n"sv,
        "\x16\x03\x01\x02"sv}) {
    const std::optional<Protocol> whole = Sniff(bytes);
    ASSERT_TRUE(whole.has_value());
    for (size_t size = 0; size <= bytes.size(); ++size) {
      const std::optional<Protocol> part = Sniff(bytes.substr(0, size));
      EXPECT_TRUE(!part || part == whole) << bytes.substr(0, size);
    }
  }
}

TEST(ProtocolSniff, AlwaysKnowsAfterItsBound) {
  for (const char filler : {'a', '\n', 'P', ' '}) {
    EXPECT_EQ(Sniff(std::string(kSniffBytesMax, filler)), Protocol::kResp);
  }
  EXPECT_EQ(Sniff("BREW /" + std::string(kSniffBytesMax, 'x')), Protocol::kResp);
}

}  // namespace protocol_sniff_test
}  // namespace headgate::front::mux
