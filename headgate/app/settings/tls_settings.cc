#include "headgate/app/settings/tls_settings.h"

#include <string>
#include <string_view>

#include "headgate/files/file_hint.h"

namespace headgate::app {
namespace {

std::string_view SettingOf(net::TlsProblem::File file) {
  switch (file) {
    case net::TlsProblem::File::kCa:
      return "tls_client_ca_file";
    case net::TlsProblem::File::kCertificate:
      return "tls_certificate_file";
    case net::TlsProblem::File::kKey:
      return "tls_key_file";
  }
  return "";
}

const std::string& FileOf(const net::TlsOptions& options, net::TlsProblem::File file) {
  switch (file) {
    case net::TlsProblem::File::kCa:
      return options.ca_file;
    case net::TlsProblem::File::kCertificate:
      return options.certificate_file;
    case net::TlsProblem::File::kKey:
      break;
  }
  return options.key_file;
}

std::string_view HintOnContent(net::TlsProblem::File file) {
  switch (file) {
    case net::TlsProblem::File::kCa:
      return "name a file with the certificates of authorities, in PEM form";
    case net::TlsProblem::File::kCertificate:
      return "name a file with the certificate and then the certificates that signed it, in PEM "
             "form";
    case net::TlsProblem::File::kKey:
      break;
  }
  return "name the private key of the certificate at the same position, in PEM form";
}

}  // namespace

net::TlsServerOptions TlsServerOptionsOf(const Settings& settings) {
  net::TlsServerOptions options{.client_ca_file = settings.tls_client_ca_file,
                                .client_names = settings.tls_client_name,
                                .http2 = true};
  for (size_t i = 0; i < settings.tls_certificate_file.size(); ++i) {
    options.certificates.push_back({.certificate_file = settings.tls_certificate_file[i],
                                    .key_file = settings.tls_key_file[i]});
  }
  return options;
}

void CheckCertificates(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  if (settings.tls_certificate_file.size() != settings.tls_key_file.size()) return;
  const auto check = [&](const net::TlsOptions& files) {
    for (const net::TlsProblem& problem : net::ProblemsOfFiles(files)) {
      configuration.AddProblem(
          SettingOf(problem.file), problem.what,
          files::HintOnFile(FileOf(files, problem.file), HintOnContent(problem.file)));
    }
  };
  const net::TlsServerOptions options = TlsServerOptionsOf(settings);
  for (const net::TlsServerOptions::Certificate& files : options.certificates)
    check({.certificate_file = files.certificate_file, .key_file = files.key_file});
  check({.ca_file = options.client_ca_file});
}

}  // namespace headgate::app
