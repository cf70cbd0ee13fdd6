#include "headgate/app/runtime/followed_certificates.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"
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

FollowedCertificates::FollowedCertificates(net::TlsServerOptions options, net::EventLoop& loop,
                                           observe::Log& log)
    : options_(std::move(options)),
      log_(log),
      files_(
          "this server",
          [this]() -> absl::Status {
            HEADGATE_RETURN_IF_ERROR(server_->Reload());
            WarnOfDates();
            return absl::OkStatus();
          },
          loop, log) {}

absl::Status FollowedCertificates::LoadFirst() {
  if (options_.certificates.empty()) return absl::OkStatus();
  HEADGATE_ASSIGN_OR_RETURN(server_, net::TlsServer::Load(options_));
  WarnOfDates();
  // A certificate and its key may be in one file.
  std::set<std::string> paths = {options_.client_ca_file};
  for (const net::TlsServerOptions::Certificate& files : options_.certificates) {
    paths.insert(files.certificate_file);
    paths.insert(files.key_file);
  }
  files_.Follow(std::move(paths));
  return absl::OkStatus();
}

void FollowedCertificates::WarnOfDates() const {
  for (const std::string& reason :
       server_->current()->CertificatesOutOfDate(base::SystemClock().WallNow())) {
    log_.Warning("certificates.out_of_date",
                 {{"reason", reason},
                  {"effect", std::string_view("connections that are verified with it fail")},
                  {"hint", std::string_view("renew it, or set the clock of this machine")}});
  }
}

void CollectCertificates(std::initializer_list<const FollowedTlsFiles*> followed,
                         observe::Sink& sink) {
  uint64_t loaded = 0;
  uint64_t refused = 0;
  for (const FollowedTlsFiles* files : followed) {
    loaded += files->loaded();
    refused += files->refused();
  }
  sink.Set(observe::Metric::kCertificateReloads, {"loaded"}, loaded);
  sink.Set(observe::Metric::kCertificateReloads, {"refused"}, refused);
}

}  // namespace headgate::app
