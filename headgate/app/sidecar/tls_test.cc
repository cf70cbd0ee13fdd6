// TLS of a sidecar, towards its clients and towards its upstream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/sidecar/settings.h"
#include "headgate/net/test_certificate.h"

namespace headgate::app {
namespace tls_test {

using ::testing::HasSubstr;

class SidecarTls : public ::testing::Test {
 protected:
  std::optional<SidecarSettings> Read(std::vector<std::string> flags,
                                      const std::string& upstream = "http://127.0.0.1:9000") {
    flags.insert(flags.end(), {"--capacity=40", "--upstream=" + upstream});
    std::ostringstream out;
    std::ostringstream err;
    auto settings = ReadSidecarSettings(flags, {}, {.out = out, .err = err});
    problem_ = err.str();
    return settings;
  }
  std::string ProblemOf(const std::vector<std::string>& flags,
                        const std::string& upstream = "http://127.0.0.1:9000") {
    Read(flags, upstream);
    return problem_;
  }

  const net::TestCertificate certificate_;
  const std::string listen_ = "--listen=tls:127.0.0.1:0";
  const std::string file_ = "--tls-certificate-file=" + certificate_.certificate_file();
  const std::string key_ = "--tls-key-file=" + certificate_.key_file();
  const std::string ca_ = "--tls-client-ca-file=" + certificate_.certificate_file();
  std::string problem_;
};

TEST_F(SidecarTls, WithoutFlagsThereIsNone) {
  const auto settings = Read({});
  ASSERT_TRUE(settings) << problem_;
  EXPECT_TRUE(TlsServerOptionsOf(settings->values()).certificates.empty());
  EXPECT_EQ(settings->upstream.tls, nullptr);
}

TEST_F(SidecarTls, ServesHttp2WithTheCertificates) {
  const auto settings =
      Read({listen_, file_, key_, ca_, "--tls-client-name=ann", "--client-from-certificate"});
  ASSERT_TRUE(settings) << problem_;
  const net::TlsServerOptions clients = TlsServerOptionsOf(settings->values());
  EXPECT_EQ(clients.certificates.at(0).key_file, certificate_.key_file());
  EXPECT_EQ(clients.client_ca_file, certificate_.certificate_file());
  EXPECT_TRUE(clients.http2);
  EXPECT_EQ(settings->values().client_from_certificate, "yes");
}

TEST_F(SidecarTls, EachFlagNeedsItsOthers) {
  EXPECT_THAT(ProblemOf({listen_}), HasSubstr("needs a certificate\nhint: set tls_certificate"));
  EXPECT_THAT(ProblemOf({listen_, file_}), HasSubstr("a certificate has no key\nhint: give each "));
  EXPECT_EQ(ProblemOf({listen_, file_, key_}), "");
  EXPECT_THAT(ProblemOf({file_, key_}), HasSubstr("no address speaks TLS\nhint: write tls: "));
  EXPECT_THAT(ProblemOf({listen_, file_, key_, "--tls-client-name=ann"}),
              HasSubstr("--tls-client-name: nobody vouches for the names of clients"));
  EXPECT_THAT(ProblemOf({listen_, file_, key_, "--client-from-certificate"}),
              HasSubstr("needs --tls-client-ca-file"));
  EXPECT_THAT(
      ProblemOf({listen_, "--listen=127.0.0.1:0", file_, key_, ca_, "--client-from-certificate"}),
      HasSubstr("tls: before each"));
  EXPECT_THAT(ProblemOf({listen_, file_, "--tls-key-file=/nowhere/key.pem"}),
              HasSubstr("'/nowhere/key.pem' cannot be used"));
}

TEST_F(SidecarTls, TheUpstreamIsAlwaysVerified) {
  const std::string over_tls = "https://service:1";
  const auto settings = Read({"--upstream-tls-name=service"}, over_tls);
  ASSERT_TRUE(settings) << problem_;
  EXPECT_NE(settings->upstream.tls, nullptr);
  EXPECT_EQ(settings->values().upstream_tls_name, "service");
  const std::string ca = "--upstream-ca-file=" + certificate_.certificate_file();
  EXPECT_EQ(ProblemOf({ca}, "h2://service:1"), "");
  EXPECT_THAT(ProblemOf({ca}), HasSubstr("https:// or h2://"));
  EXPECT_THAT(ProblemOf({"--upstream-ca-file=/nowhere"}, over_tls),
              HasSubstr("'/nowhere' cannot be used"));
  EXPECT_THAT(ProblemOf({"--upstream-key-file=" + certificate_.key_file()}, over_tls),
              HasSubstr("give both"));
}

}  // namespace tls_test
}  // namespace headgate::app
