// Expected values are written from HAProxy's doc/proxy-protocol.txt.
#include "headgate/net/proxy_header.h"

#include <gtest/gtest.h>

#include <boost/crc.hpp>

namespace headgate::net {
namespace proxy_header_test {

using State = ProxyHeaderReader::State;
using Client = ProxyHeader::Client;

const std::string kSignature("\r\n\r\n\0\r\nQUIT\n", 12);

std::string Number16(size_t number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number)};
}

std::string Binary(uint8_t command, uint8_t family, const std::string& rest) {
  return kSignature + static_cast<char>(command) + static_cast<char>(family) +
         Number16(rest.size()) + rest;
}

// 192.0.2.7:40000 to 10.0.0.1:8080.
const std::string kTcp4Addresses("\xc0\x00\x02\x07\x0a\x00\x00\x01\x9c\x40\x1f\x90", 12);

std::string Tlv(uint8_t type, const std::string& value) {
  return static_cast<char>(type) + Number16(value.size()) + value;
}

struct Read {
  State state;
  std::string client;
  size_t taken;
};

// Passes the whole of `bytes` at once, then byte by byte; both have to agree.
Read ReadAll(const std::string& bytes) {
  const auto read = [&](size_t piece) {
    ProxyHeaderReader reader;
    size_t taken = 0;
    while (reader.state() == State::kMore && taken < bytes.size())
      taken += reader.Take(std::string_view(bytes).substr(taken, piece));
    std::string client;
    if (reader.state() == State::kDone) {
      const ProxyHeader& header = reader.header();
      client = header.client == Client::kProxyItself ? "the proxy"
               : header.client == Client::kUnknown
                   ? "unknown"
                   : base::ToString(header.ip) + " " + std::to_string(header.port);
    }
    return Read{reader.state(), client, taken};
  };
  const Read at_once = read(bytes.size());
  const Read in_pieces = read(1);
  EXPECT_EQ(at_once.state, in_pieces.state) << bytes;
  EXPECT_EQ(at_once.client, in_pieces.client) << bytes;
  if (at_once.state == State::kDone) {
    EXPECT_EQ(at_once.taken, in_pieces.taken) << bytes;
  }
  return at_once;
}

void ExpectClient(const std::string& header, const std::string& client) {
  const Read read = ReadAll(header + "PING\r\n");
  EXPECT_EQ(read.state, State::kDone) << header;
  EXPECT_EQ(read.client, client);
  EXPECT_EQ(read.taken, header.size()) << "nothing behind the header is taken";
}

void ExpectInvalid(const std::string& header) {
  EXPECT_EQ(ReadAll(header + "PING\r\n").state, State::kInvalid) << header;
}

TEST(ProxyHeader, NamesTheClientInText) {
  ExpectClient("PROXY TCP4 192.0.2.7 10.0.0.1 40000 8080\r\n", "192.0.2.7 40000");
  ExpectClient("PROXY TCP6 2001:db8::7 2001:db8::1 0 65535\r\n", "2001:db8::7 0");
  ExpectClient("PROXY UNKNOWN\r\n", "unknown");
  ExpectClient("PROXY UNKNOWN whatever comes\r\n", "unknown");
}

TEST(ProxyHeader, RefusesTextThatIsNotExact) {
  for (const char* const text :
       {"PROXY TCP4 192.0.2.7 10.0.0.1 40000\r\n", "PROXY TCP4 192.0.2.7 10.0.0.1 40000 8080 1\r\n",
        "PROXY TCP4  192.0.2.7 10.0.0.1 40000 8080\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 040 8080\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 65536 8080\r\n", "PROXY TCP4 ::1 ::2 1 2\r\n",
        "PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n", "PROXY TCP4 192.0.02.7 10.0.0.1 1 2\r\n",
        "PROXY TCP4 192.0.2.7 10.0.0.1 1 +2\r\n", "PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
        "PROXY UNKNOWNS\r\n", "PROXY\r\n", "proxy TCP4 192.0.2.7 10.0.0.1 1 2\r\n", "PING\r\n"}) {
    ExpectInvalid(text);
  }
}

TEST(ProxyHeader, TextHasAtMost107Bytes) {
  const std::string begin = "PROXY UNKNOWN ";
  ExpectClient(begin + std::string(105 - begin.size(), 'x') + "\r\n", "unknown");
  ExpectInvalid(begin + std::string(106 - begin.size(), 'x') + "\r\n");
  EXPECT_EQ(ReadAll(begin + std::string(200, 'x')).state, State::kInvalid) << "without an end";
}

TEST(ProxyHeader, NamesTheClientInBinary) {
  ExpectClient(Binary(0x21, 0x11, kTcp4Addresses), "192.0.2.7 40000");
  std::string six(36, '\0');
  six.replace(0, 2, "\x20\x01");
  six[15] = 9;
  six.replace(32, 2, "\x01\xbb");
  ExpectClient(Binary(0x21, 0x21, six), "2001::9 443");
  ExpectClient(Binary(0x21, 0x31, std::string(216, 'p')), "unknown");
  ExpectClient(Binary(0x21, 0x00, ""), "unknown");
}

TEST(ProxyHeader, AHealthCheckIsOfTheProxyItself) {
  ExpectClient(Binary(0x20, 0x00, ""), "the proxy");
  ExpectClient(Binary(0x20, 0x11, "no addresses"), "the proxy");
}

TEST(ProxyHeader, SkipsFurtherFieldsAndRefusesOnesThatDoNotFit) {
  const std::string name = Tlv(0x02, "example.com");
  ExpectClient(Binary(0x21, 0x11, kTcp4Addresses + name + Tlv(0x04, "")), "192.0.2.7 40000");
  ExpectInvalid(Binary(0x21, 0x11, kTcp4Addresses + name.substr(0, name.size() - 1)));
  ExpectInvalid(Binary(0x21, 0x11, kTcp4Addresses + "\x02"));
}

TEST(ProxyHeader, AChecksumHasToMatch) {
  std::string header = Binary(0x21, 0x11, kTcp4Addresses + Tlv(0x03, std::string(4, '\0')));
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes("123456789", 9);
  ASSERT_EQ(crc.checksum(), 0xE3069283) << "the check value of CRC-32C (RFC 3720, B.4)";
  crc.reset();
  crc.process_bytes(header.data(), header.size());
  ExpectInvalid(header);
  const uint32_t sum = crc.checksum();
  header.replace(header.size() - 4, 4, Number16(sum >> 16) + Number16(sum & 0xffff));
  ExpectClient(header, "192.0.2.7 40000");
  ExpectInvalid(Binary(0x21, 0x11, kTcp4Addresses + Tlv(0x03, "abc")));
}

TEST(ProxyHeader, RefusesBinaryThatIsNotExact) {
  ExpectInvalid(Binary(0x22, 0x11, kTcp4Addresses));
  ExpectInvalid(Binary(0x11, 0x11, kTcp4Addresses));
  ExpectInvalid(Binary(0x21, 0x12, kTcp4Addresses));
  ExpectInvalid(Binary(0x21, 0x11, kTcp4Addresses.substr(1)));
  ExpectInvalid(Binary(0x21, 0x21, kTcp4Addresses));
}

TEST(ProxyHeader, BinaryHasAtMost4096Bytes) {
  const size_t rest = ProxyHeaderReader::kBytesMax - 16 - kTcp4Addresses.size() - 3;
  ExpectClient(Binary(0x21, 0x11, kTcp4Addresses + Tlv(0xE0, std::string(rest, 'x'))),
               "192.0.2.7 40000");
  ExpectInvalid(Binary(0x21, 0x11, kTcp4Addresses + Tlv(0xE0, std::string(rest + 1, 'x'))));
}

}  // namespace proxy_header_test
}  // namespace headgate::net
