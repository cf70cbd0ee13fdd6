#include "headgate/app/runtime/followed_certificates.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"

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

}  // namespace

net::TlsServerOptions TlsServerOptionsOf(const Settings& settings) {
  net::TlsServerOptions options{.client_ca_file = settings.tls_client_ca_file,
                                .client_names = settings.tls_client_name};
  for (size_t i = 0; i < settings.tls_certificate_file.size(); ++i) {
    options.certificates.push_back({.certificate_file = settings.tls_certificate_file[i],
                                    .key_file = settings.tls_key_file[i]});
  }
  return options;
}

void CheckCertificates(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  if (settings.tls_certificate_file.size() != settings.tls_key_file.size()) return;
  for (const net::TlsProblem& problem : net::ProblemsOfFiles(TlsServerOptionsOf(settings)))
    configuration.AddProblem(SettingOf(problem.file), problem.what);
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
                  {"effect", std::string_view("clients that check it do not connect")},
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
