#include "headgate/front/mux/mux.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace headgate::front::mux {
namespace mux_test {

using namespace std::string_view_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Named final : public net::Session {
 public:
  explicit Named(std::string_view name) : name_(name) {}
  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant) override {
    output += name_;
    return {.consumed = input.size()};
  }

 private:
  std::string_view name_;
};

Sessions::Factory Makes(std::string_view name) {
  return [name](const net::Peer&) { return std::make_unique<Named>(name); };
}

std::string NameOf(const net::SessionChoice& choice) {
  if (choice.session == nullptr) return "none";
  std::string name;
  choice.session->OnBytes({}, name, base::Instant{});
  return name;
}

struct Address {
  net::SessionChoice Choose(std::string_view bytes, net::Room room = net::Room::kForIt) {
    return chooser(bytes, net::Peer{}, room);
  }
  Counters counters;
  net::SessionChooser chooser;
};

struct Both : Address {
  Both() {
    chooser =
        Mux({.resp = Makes("resp"), .http1 = Makes("http"), .http2 = Makes("http2")}, counters);
  }
};
struct OnlyResp : Address {
  OnlyResp() { chooser = Mux({.resp = Makes("resp"), .http1 = {}, .http2 = {}}, counters); }
};
struct OnlyHttp : Address {
  OnlyHttp() {
    chooser = Mux({.resp = {}, .http1 = Makes("http"), .http2 = Makes("http2")}, counters);
  }
};

TEST(Mux, ChoosesByTheFirstBytesAndCounts) {
  Both both;
  EXPECT_EQ(NameOf(both.Choose("*1\r\n")), "resp");
  EXPECT_EQ(NameOf(both.Choose("GET / HTTP/1.1\r\n")), "http");
  EXPECT_EQ(NameOf(both.Choose("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), "http2");
  EXPECT_EQ(NameOf(both.Choose("PING\r\n")), "resp");
  EXPECT_EQ(both.counters.resp.value(), 2u);
  EXPECT_EQ(both.counters.http.value(), 2u);
}

TEST(Mux, TheFirstBytesMustBeOfTheProtocolThatTlsHasAgreedOn) {
  constexpr std::string_view kHttp2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr std::string_view kHttp1 = "GET / HTTP/1.1\r\n";
  Both both;
  const auto name = [&](std::string_view bytes, net::Alpn agreed) {
    return NameOf(both.chooser(bytes, net::Peer{.alpn = agreed}, net::Room::kForIt));
  };
  EXPECT_EQ(name(kHttp1, net::Alpn::kHttp11), "http");
  EXPECT_EQ(name(kHttp2, net::Alpn::kHttp11), "none");
  EXPECT_EQ(name(kHttp1, net::Alpn::kHttp2), "none");
  EXPECT_EQ(name(kHttp2, net::Alpn::kHttp2), "http2");
}

TEST(Mux, WaitsForBytesThatTell) {
  Both both;
  EXPECT_FALSE(both.Choose("").made);
  EXPECT_FALSE(both.Choose("PI").made);
  // Serving only one protocol does not speed up detection: the other protocols are refused in their
  // own words.
  OnlyResp resp;
  EXPECT_FALSE(resp.Choose("PI").made);
}

TEST(Mux, RefusesAProtocolThatTheAddressDoesNotSpeakInItsOwnWords) {
  OnlyResp resp;
  const net::SessionChoice http1 = resp.Choose("GET / HTTP/1.1\r\n");
  EXPECT_TRUE(http1.made);
  EXPECT_EQ(NameOf(http1), "none");
  EXPECT_THAT(http1.refusal, StartsWith("HTTP/1.1 421 "));
  // An empty SETTINGS frame, then GOAWAY with the error HTTP_1_1_REQUIRED = 13.
  EXPECT_EQ(resp.Choose("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").refusal,
            "\0\0\0\4\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0d"sv);
  EXPECT_EQ(resp.Choose("\x16\x03\x01\x02\x00"sv).refusal, "\x15\x03\x01\x00\x02\x02\x46"sv);
  OnlyHttp http;
  EXPECT_EQ(http.Choose("*1\r\n").refusal, "-ERR this address speaks HTTP only\r\n");
  EXPECT_EQ(http.counters.resp.value(), 0u);
}

TEST(Mux, AClientWithoutAPlaceHearsSoInItsOwnProtocol) {
  Both both;
  EXPECT_FALSE(both.Choose("", net::Room::kNone).made);
  const net::SessionChoice http = both.Choose("GET / HTTP/1.1\r\n", net::Room::kNone);
  EXPECT_TRUE(http.made);
  EXPECT_EQ(NameOf(http), "none");
  EXPECT_THAT(http.refusal, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(http.refusal, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(http.refusal, HasSubstr("\"detail\":\"max number of clients reached\""));
  EXPECT_EQ(both.Choose("*1\r\n", net::Room::kNone).refusal,
            "-ERR max number of clients reached\r\n");
  EXPECT_EQ(both.counters.resp.value() + both.counters.http.value(), 0u);
}

TEST(Mux, WithOneProtocolARefusedClientNeedNotSpeakFirst) {
  OnlyResp resp;
  EXPECT_EQ(resp.Choose("", net::Room::kNone).refusal, "-ERR max number of clients reached\r\n");
  OnlyHttp http;
  EXPECT_THAT(http.Choose("", net::Room::kNone).refusal, StartsWith("HTTP/1.1 503 "));
}

}  // namespace mux_test
}  // namespace headgate::front::mux
