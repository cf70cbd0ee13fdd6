#include "headgate/follow/certificates.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"

namespace headgate::follow {

Certificates::Certificates(net::TlsServerOptions options, net::EventLoop& loop, observe::Log& log)
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

absl::Status Certificates::LoadFirst() {
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

void Certificates::WarnOfDates() const {
  for (const std::string& reason :
       server_->current()->CertificatesOutOfDate(base::SystemClock().WallNow())) {
    log_.Warning("certificates.out_of_date",
                 {{"reason", reason},
                  {"effect", std::string_view("connections that are verified with it fail")},
                  {"hint", std::string_view("renew it, or set the clock of this machine")}});
  }
}

void CollectCertificates(std::span<const TlsFiles* const> followed, observe::Sink& sink) {
  uint64_t loaded = 0;
  uint64_t refused = 0;
  for (const TlsFiles* files : followed) {
    loaded += files->loaded();
    refused += files->refused();
  }
  sink.Set(observe::Metric::kCertificateReloads, {"loaded"}, loaded);
  sink.Set(observe::Metric::kCertificateReloads, {"refused"}, refused);
}

}  // namespace headgate::follow
