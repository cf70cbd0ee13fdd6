#include "headgate/app/sidecar/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/net/test_certificate.h"

namespace headgate::app {
namespace tls_test {

using ::testing::HasSubstr;

std::string ProblemOf(const SidecarTlsFlags& flags, const TlsAddresses& addresses) {
  return std::string(ReadSidecarTls(flags, addresses).status().message());
}

TEST(SidecarTls, WithoutFlagsThereIsNone) {
  const auto tls = ReadSidecarTls({}, {});
  ASSERT_TRUE(tls.ok());
  EXPECT_TRUE(tls->clients.certificates.empty());
  EXPECT_EQ(tls->upstream, nullptr);
}

TEST(SidecarTls, ServesHttp2WithTheCertificates) {
  const net::TestCertificate certificate;
  const auto tls = ReadSidecarTls({.certificate_file = {certificate.certificate_file()},
                                   .key_file = {certificate.key_file()},
                                   .client_ca_file = certificate.certificate_file(),
                                   .client_name = {"ann"},
                                   .client_from_certificate = true},
                                  {.some_listen = true, .all_listen = true});
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_EQ(tls->clients.certificates.at(0).key_file, certificate.key_file());
  EXPECT_EQ(tls->clients.client_ca_file, certificate.certificate_file());
  EXPECT_TRUE(tls->clients.http2);
  EXPECT_TRUE(tls->client_from_certificate);
}

TEST(SidecarTls, EachFlagNeedsItsOthers) {
  const net::TestCertificate certificate;
  const TlsAddresses listens{.some_listen = true, .all_listen = true};
  EXPECT_THAT(ProblemOf({}, listens), HasSubstr("needs --tls-certificate-file"));
  SidecarTlsFlags flags{.certificate_file = {certificate.certificate_file()}};
  EXPECT_THAT(ProblemOf(flags, listens), HasSubstr("needs its --tls-key-file"));
  flags.key_file = {certificate.key_file()};
  EXPECT_EQ(ProblemOf(flags, listens), "");
  EXPECT_THAT(ProblemOf(flags, {}), HasSubstr("need a --listen tls:"));
  flags.client_name = {"ann"};
  EXPECT_THAT(ProblemOf(flags, listens), HasSubstr("--tls-client-name needs"));
  flags.client_name.clear();
  flags.client_from_certificate = true;
  EXPECT_THAT(ProblemOf(flags, listens), HasSubstr("needs --tls-client-ca-file"));
  flags.client_ca_file = certificate.certificate_file();
  EXPECT_THAT(ProblemOf(flags, {.some_listen = true}), HasSubstr("tls: before each"));
  flags.key_file = {"/nowhere/key.pem"};
  EXPECT_THAT(ProblemOf(flags, listens), HasSubstr("'/nowhere/key.pem' cannot be used"));
}

TEST(SidecarTls, TheUpstreamIsAlwaysVerified) {
  const net::TestCertificate certificate;
  const auto tls = ReadSidecarTls({.upstream_name = "service"}, {.upstream = true});
  ASSERT_TRUE(tls.ok()) << tls.status();
  EXPECT_NE(tls->upstream, nullptr);
  EXPECT_EQ(tls->upstream_name, "service");
  const SidecarTlsFlags flags{.upstream_ca_file = certificate.certificate_file()};
  EXPECT_EQ(ProblemOf(flags, {.upstream = true, .upstream_http2 = true}), "");
  EXPECT_THAT(ProblemOf(flags, {}), HasSubstr("https:// or h2://"));
  EXPECT_THAT(ProblemOf({.upstream_ca_file = "/nowhere"}, {.upstream = true}),
              HasSubstr("'/nowhere' cannot be used"));
  EXPECT_THAT(ProblemOf({.upstream_key_file = certificate.key_file()}, {.upstream = true}),
              HasSubstr("give both"));
}

}  // namespace tls_test
}  // namespace headgate::app
