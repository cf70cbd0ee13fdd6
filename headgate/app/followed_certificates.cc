#include "headgate/app/followed_certificates.h"

#include <set>
#include <string_view>
#include <utility>
#include <vector>

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
    : options_(std::move(options)), loop_(loop), log_(log) {}

absl::Status FollowedCertificates::LoadFirst() {
  if (options_.certificates.empty()) return absl::OkStatus();
  HEADGATE_ASSIGN_OR_RETURN(server_, net::TlsServer::Load(options_));
  // A certificate and its key may be in one file.
  std::set<std::string> paths;
  for (const net::TlsServerOptions::Certificate& files : options_.certificates) {
    paths.insert(files.certificate_file);
    paths.insert(files.key_file);
  }
  if (!options_.client_ca_file.empty()) paths.insert(options_.client_ca_file);
  paths_.assign(paths.begin(), paths.end());
  source_ = std::make_unique<watch::file::FileSource>(paths_, loop_);
  bool first = true;
  source_->Subscribe([this, first](const rule::DocumentSet&) mutable {
    // The first report is of the files that were just loaded.
    if (!std::exchange(first, false)) OnChange();
  });
  return absl::OkStatus();
}

void FollowedCertificates::Reload() {
  if (source_ != nullptr) source_->Refresh();
}

void FollowedCertificates::OnChange() {
  const absl::Status status = server_->Reload();
  if (status.ok()) {
    loaded_.fetch_add(1, std::memory_order_relaxed);
    log_.Info("certificates.loaded", {{"certificates", uint64_t{options_.certificates.size()}}});
    return;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  log_.Error("certificates.refused",
             {{"reason", std::string(status.message())},
              {"effect", std::string_view("new connections get the certificates in force")},
              {"hint", std::string_view("write the certificate and its key again")}});
}

void FollowedCertificates::Collect(observe::Sink& sink) const {
  using observe::Metric;
  sink.Set(Metric::kCertificateReloads, {"loaded"}, loaded_.load(std::memory_order_relaxed));
  sink.Set(Metric::kCertificateReloads, {"refused"}, refused_.load(std::memory_order_relaxed));
}

}  // namespace headgate::app
