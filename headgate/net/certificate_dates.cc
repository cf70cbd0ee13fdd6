#include "headgate/net/certificate_dates.h"

#include <fmt/format.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <memory>

namespace headgate::net {
namespace {

// The text that `print` writes to a BIO, up to 256 bytes.
template <typename Print>
std::string Printed(const Print& print) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  print(bio.get());
  std::string text(256, '\0');
  text.resize(static_cast<size_t>(
      std::max(0, BIO_read(bio.get(), text.data(), static_cast<int>(text.size())))));
  return text;
}

// In OpenSSL's form: "Nov 25 10:13:55 2026 GMT".
std::string DateText(const ASN1_TIME* time) {
  return Printed([&](BIO* bio) { ASN1_TIME_print(bio, time); });
}

// "CN = example", with control characters escaped.
std::string SubjectText(const X509* certificate) {
  return Printed([&](BIO* bio) {
    X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  });
}

// "expired on …", "is not valid before …", or empty.
std::string OutOfDate(const X509* certificate, std::time_t now_s) {
  const ASN1_TIME* const from = X509_get0_notBefore(certificate);
  const ASN1_TIME* const until = X509_get0_notAfter(certificate);
  // ASN1_TIME_cmp_time_t returns -2 for a time that cannot be read.
  if (ASN1_TIME_cmp_time_t(from, now_s) == 1)
    return fmt::format("is not valid before {}", DateText(from));
  if (ASN1_TIME_cmp_time_t(until, now_s) == -1)
    return fmt::format("expired on {}", DateText(until));
  return "";
}

// A copy of the list of certificates in the store, because verifications by other threads may
// reorder the store's own list.
std::vector<const X509*> CertificatesIn(X509_STORE* store) {
  std::vector<const X509*> found;
  X509_STORE_lock(store);
  const STACK_OF(X509_OBJECT)* const objects = X509_STORE_get0_objects(store);
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509* const certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (certificate != nullptr) found.push_back(certificate);  // null: a revocation list
  }
  X509_STORE_unlock(store);
  return found;
}

}  // namespace

std::string WhyOutOfDate(const X509* certificate, std::string_view file, std::time_t now_s) {
  const std::string why = OutOfDate(certificate, now_s);
  return why.empty() ? why : fmt::format("the certificate in '{}' {}", file, why);
}

std::vector<std::string> AuthoritiesOutOfDate(X509_STORE* store, std::string_view file,
                                              std::time_t now_s) {
  const std::vector<const X509*> authorities = CertificatesIn(store);
  std::vector<std::string> problems;
  for (const X509* const authority : authorities) {
    const std::string why = OutOfDate(authority, now_s);
    if (why.empty()) continue;
    const bool is_renewed =
        std::any_of(authorities.begin(), authorities.end(), [&](const X509* other) {
          return X509_NAME_cmp(X509_get_subject_name(other), X509_get_subject_name(authority)) ==
                     0 &&
                 OutOfDate(other, now_s).empty();
        });
    if (is_renewed) continue;
    problems.push_back(
        fmt::format("the authority '{}' in '{}' {}", SubjectText(authority), file, why));
  }
  return problems;
}

}  // namespace headgate::net
