#include "headgate/app/sidecar/sessions.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "headgate/http/http2/test_exchanges.h"

namespace headgate::app {
namespace sessions_test {

using http::http2::kNow;
using http::http2::TestApplication;

constexpr std::string_view kRequest =
    "GET /a HTTP/1.1\r\nHost: h\r\nX-Client-Id: claimed\r\nX-Client-Id: twice\r\n\r\n";
constexpr std::string_view kHttp2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct SidecarSessionsTest : ::testing::Test {
  net::SessionChoice Choose(bool tls, std::string_view bytes) {
    if (!sessions) sessions.emplace(application, options);
    return sessions->Chooser(tls)(bytes, peer, net::Room::kForIt);
  }
  // The head of this request, as the application gets it.
  http::RequestHead Receive(bool tls, std::string_view bytes) {
    const net::SessionChoice choice = Choose(tls, bytes);
    std::string output;
    (void)choice.session->OnBytes(bytes, output, kNow);
    EXPECT_EQ(application.requests.size(), 1u) << output;
    return application.requests.empty() ? http::RequestHead() : application.last().head;
  }

  TestApplication application;
  SidecarSessionOptions options;
  net::Peer peer;
  std::optional<SidecarSessions> sessions;
};

TEST_F(SidecarSessionsTest, TheConnectionSaysTheScheme) {
  EXPECT_EQ(Receive(true, kRequest).scheme, "https");
  application.requests.clear();
  EXPECT_EQ(Receive(false, kRequest).scheme, "http");
}

TEST_F(SidecarSessionsTest, ATargetWithAnotherSchemeIsRefused) {
  peer.encrypted = true;
  const net::SessionChoice choice = Choose(true, kRequest);
  std::string output;
  (void)choice.session->OnBytes(std::string_view("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n"),
                                output, kNow);
  EXPECT_TRUE(output.starts_with("HTTP/1.1 400 ")) << output;
  EXPECT_TRUE(application.requests.empty());
}

TEST_F(SidecarSessionsTest, TheCertificateReplacesWhatTheClientClaims) {
  options.certificate_field = "X-Client-Id";
  peer.certificate_name = "spiffe://fleet/ann";
  const http::Fields fields = Receive(true, kRequest).fields;
  EXPECT_EQ(fields.CountOf("X-Client-Id"), 1u);
  EXPECT_EQ(fields.Find("X-Client-Id"), "spiffe://fleet/ann");
}

TEST_F(SidecarSessionsTest, ANameMayHaveWhatAFieldMayHave) {
  options.certificate_field = "X-Client-Id";
  for (const std::string& name : {std::string("Alice Smith"), std::string("Jos\xc3\xa9"),
                                  std::string(proxy::kCertificateNameBytesMax, 'a')}) {
    peer.certificate_name = name;
    application.requests.clear();
    EXPECT_EQ(Receive(true, kRequest).fields.Find("X-Client-Id"), name);
  }
  EXPECT_EQ(sessions->misnamed(), 0u);
}

TEST_F(SidecarSessionsTest, ACertificateWithoutANameNamesNobody) {
  options.certificate_field = "X-Client-Id";
  EXPECT_EQ(Receive(true, kRequest).fields.CountOf("X-Client-Id"), 0u);
}

// A name is never cut to the part that a field may have. Otherwise the client would pass as another
// client, or as one without a name.
TEST_F(SidecarSessionsTest, ANameThatNoFieldMayHaveIsRefused) {
  options.certificate_field = "X-Client-Id";
  uint64_t refused = 0;
  for (const std::string& name :
       {std::string("a\r\nB: c"), std::string("a\0b", 3), std::string("a\tb"), std::string(" a"),
        std::string("a "), std::string("a\x7f"),
        std::string(proxy::kCertificateNameBytesMax + 1, 'a')}) {
    peer.certificate_name = name;
    const net::SessionChoice choice = Choose(true, kRequest);
    std::string output;
    (void)choice.session->OnBytes(kRequest, output, kNow);
    EXPECT_TRUE(output.starts_with("HTTP/1.1 403 ")) << output;
    EXPECT_NE(output.find("cannot be a client's id"), std::string::npos) << output;
    EXPECT_EQ(sessions->misnamed(), ++refused);
  }
  EXPECT_TRUE(application.requests.empty());
}

// The wall clock was two hours behind and has been set. The time of decisions does not follow at
// once, but the field Date does.
TEST_F(SidecarSessionsTest, DateOfARefusalIsATimeOfDay) {
  base::ManualClock clock{base::WallTime::FromNanos(kNow.ns)};
  clock.StepWall(std::chrono::hours(2));
  options.certificate_field = "X-Client-Id";
  options.clock = &clock;
  peer.certificate_name = " a";
  const net::SessionChoice choice = Choose(true, kRequest);
  std::string output;
  (void)choice.session->OnBytes(kRequest, output, kNow);
  EXPECT_NE(output.find("Date: Thu, 01 Jan 1970 02:16:40 GMT\r\n"), std::string::npos) << output;
}

TEST_F(SidecarSessionsTest, WithoutThatSettingTheFieldIsTheClients) {
  peer.certificate_name = "ann";
  EXPECT_EQ(Receive(true, kRequest).fields.CountOf("X-Client-Id"), 2u);
}

TEST_F(SidecarSessionsTest, TheFirstBytesMustBeOfTheAgreedProtocol) {
  struct Case {
    net::Alpn agreed;
    bool http1;
    bool http2;
  };
  for (const Case& c : {Case{net::Alpn::kNone, true, true}, Case{net::Alpn::kHttp11, true, false},
                        Case{net::Alpn::kHttp2, false, true}}) {
    peer.alpn = c.agreed;
    const net::SessionChoice http1 = Choose(true, kRequest);
    EXPECT_TRUE(http1.made);
    EXPECT_EQ(http1.session != nullptr, c.http1);
    EXPECT_EQ(http1.refusal.empty(), c.http1);
    const net::SessionChoice http2 = Choose(true, kHttp2);
    EXPECT_TRUE(http2.made);
    EXPECT_EQ(http2.session != nullptr, c.http2);
    EXPECT_EQ(http2.refusal.empty(), c.http2);
  }
}

}  // namespace sessions_test
}  // namespace headgate::app
