// For tests: creates a self-signed certificate and its key, as PEM files.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace headgate::net {

class TestCertificate {
 public:
  enum class Key : uint8_t { kEc, kRsa };

  // `names`: its subject alternative names, as OpenSSL's configuration has them.
  // It is valid from an hour ago for `hours` from now.
  explicit TestCertificate(const char* names = "DNS:localhost,IP:127.0.0.1", Key kind = Key::kEc,
                           int hours = 24) {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-certificate-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    EVP_PKEY* const key = kind == Key::kEc ? EVP_EC_gen("P-256") : EVP_RSA_gen(2048);
    X509* const certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), hours * 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* const name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    Extend(certificate, NID_subject_alt_name, names);
    Extend(certificate, NID_basic_constraints, "CA:TRUE");
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
    Write(certificate_file(), [&](FILE* file) { return PEM_write_X509(file, certificate); });
    Write(key_file(), [&](FILE* file) {
      return PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  ~TestCertificate() { std::filesystem::remove_all(folder_); }
  TestCertificate(const TestCertificate&) = delete;

  std::string certificate_file() const { return folder_ + "/certificate.pem"; }
  std::string key_file() const { return folder_ + "/key.pem"; }

 private:
  static void Extend(X509* certificate, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    EXPECT_EQ(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
  }
  template <typename WritePem>
  static void Write(const std::string& path, const WritePem& write) {
    FILE* const file = std::fopen(path.c_str(), "w");
    EXPECT_EQ(write(file), 1);
    EXPECT_EQ(std::fclose(file), 0);
  }

  std::string folder_;
};

}  // namespace headgate::net
