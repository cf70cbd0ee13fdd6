#include "headgate/net/tls_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "headgate/net/test_certificate.h"

namespace headgate::net {
namespace tls_client_test {

TlsOptions FilesOf(const TestCertificate& certificate) {
  return {.ca_file = certificate.certificate_file(),
          .certificate_file = certificate.certificate_file(),
          .key_file = certificate.key_file()};
}

void Copy(const std::string& from, const std::string& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

TEST(TlsClient, ReadsFilesAgainOnceTheyHaveChanged) {
  const TestCertificate certificate;
  const TestCertificate next;
  const auto client = TlsClient::Load(FilesOf(certificate));
  ASSERT_TRUE(client.ok()) << client.status();
  const std::shared_ptr<TlsContext> first = (*client)->Current();
  EXPECT_EQ((*client)->Current(), first);
  Copy(next.certificate_file(), certificate.certificate_file());
  EXPECT_EQ((*client)->Current(), first) << "the key is still of the other certificate";
  Copy(next.key_file(), certificate.key_file());
  const std::shared_ptr<TlsContext> second = (*client)->Current();
  EXPECT_NE(second, first);
  EXPECT_EQ((*client)->Current(), second);
}

TEST(TlsClient, FilesThatCannotBeUsedLeaveThoseBefore) {
  const TestCertificate certificate;
  const auto client = TlsClient::Load(FilesOf(certificate));
  ASSERT_TRUE(client.ok()) << client.status();
  const std::shared_ptr<TlsContext> first = (*client)->Current();
  std::ofstream(certificate.key_file()) << "half a ke";
  EXPECT_EQ((*client)->Current(), first);
  std::filesystem::remove(certificate.certificate_file());
  EXPECT_EQ((*client)->Current(), first);
}

TEST(TlsClient, NamesAFileThatCannotBeUsedAtFirst) {
  EXPECT_FALSE(TlsClient::Load({.ca_file = "/nowhere/ca.pem"}).ok());
}

}  // namespace tls_client_test
}  // namespace headgate::net
