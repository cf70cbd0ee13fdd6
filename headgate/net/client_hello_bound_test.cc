#include "headgate/net/client_hello_bound.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace headgate::net {
namespace client_hello_bound_test {

constexpr size_t kMax = ClientHelloBound::kBytesMax;

// RFC 8446, 5.1. `type`: 20 change_cipher_spec, 22 handshake, 23 application_data.
std::string Record(std::string_view fragment, char type = 22) {
  return std::string{type, 3, 1, static_cast<char>(fragment.size() >> 8),
                     static_cast<char>(fragment.size())}
      .append(fragment);
}

// RFC 8446, 4: the header of a ClientHello with a body of `size` bytes.
std::string HelloHeader(size_t size) {
  return {1, static_cast<char>(size >> 16), static_cast<char>(size >> 8), static_cast<char>(size)};
}
std::string Hello(size_t size) { return HelloHeader(size) + std::string(size, 'h'); }

// In pieces of every size up to `piece_max`.
void Expect(bool keeps, std::string_view bytes, size_t piece_max = 12) {
  for (size_t piece = 1; piece <= piece_max; ++piece) {
    ClientHelloBound bound;
    bool all = true;
    for (size_t at = 0; all && at < bytes.size(); at += piece)
      all = bound.Take(bytes.substr(at, piece));
    EXPECT_EQ(all, keeps) << "in pieces of " << piece;
  }
  EXPECT_EQ(ClientHelloBound().Take(bytes), keeps) << "in one piece";
}

TEST(ClientHelloBound, LetsAHelloOfTheBoundPassAndNoLongerOne) {
  Expect(true, Record(HelloHeader(kMax)));
  Expect(false, Record(HelloHeader(kMax + 1)));
  Expect(false, Record(HelloHeader(131'000)));
  Expect(false, Record(HelloHeader(0xffffff)));
  Expect(true, Record(""));
  Expect(true, "");
}

TEST(ClientHelloBound, ReadsAHeaderThatRecordsCutApart) {
  const std::string header = HelloHeader(kMax + 1);
  for (size_t at = 1; at < header.size(); ++at)
    Expect(false, Record(header.substr(0, at)) + Record("") + Record(header.substr(at)));
}

// After a HelloRetryRequest the client sends another one, which may follow at once.
TEST(ClientHelloBound, BoundsTheSecondHelloToo) {
  const std::string change_cipher_spec = Record("\1", 20);
  const std::string early_data = Record(std::string(300, '\xff'), 23);
  const std::string first = Record(Hello(300)) + early_data + change_cipher_spec;
  Expect(true, first + Record(Hello(kMax - 300)));
  Expect(false, first + Record(HelloHeader(kMax + 1)));
  // Two messages in one record.
  Expect(true, Record(Hello(40) + HelloHeader(kMax)));
  Expect(false, Record(Hello(40) + HelloHeader(kMax + 1)));
}

TEST(ClientHelloBound, LeavesTheFormOfSsl2ToOpenSsl) {
  Expect(true, "\x80\x2e\x01\x03\x03" + Record(HelloHeader(131'000)));
}

}  // namespace client_hello_bound_test
}  // namespace headgate::net
