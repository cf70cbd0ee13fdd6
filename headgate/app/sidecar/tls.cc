#include "headgate/app/sidecar/tls.h"

#include <string_view>
#include <utility>

namespace headgate::app {
namespace {

absl::Status WrongFlags(std::string_view what) {
  return absl::InvalidArgumentError(std::string(what));
}

absl::StatusOr<net::TlsServerOptions> ClientsOf(const SidecarTlsFlags& flags,
                                                const TlsAddresses& addresses) {
  net::TlsServerOptions clients{
      .client_ca_file = flags.client_ca_file, .client_names = flags.client_name, .http2 = true};
  if (flags.certificate_file.size() != flags.key_file.size())
    return WrongFlags("each --tls-certificate-file needs its --tls-key-file, in the same order");
  if (!addresses.some_listen) {
    if (!flags.certificate_file.empty() || !flags.client_ca_file.empty())
      return WrongFlags(
          "--tls-certificate-file and --tls-client-ca-file need a --listen tls:ADDRESS");
  } else if (flags.certificate_file.empty()) {
    return WrongFlags("--listen tls:ADDRESS needs --tls-certificate-file and --tls-key-file");
  }
  if (!flags.client_name.empty() && flags.client_ca_file.empty())
    return WrongFlags("--tls-client-name needs --tls-client-ca-file");
  for (size_t i = 0; i < flags.certificate_file.size(); ++i) {
    clients.certificates.push_back(
        {.certificate_file = flags.certificate_file[i], .key_file = flags.key_file[i]});
  }
  for (const net::TlsProblem& problem : net::ProblemsOfFiles(clients))
    return WrongFlags(problem.what);
  return clients;
}

absl::Status ReadUpstream(const SidecarTlsFlags& flags, const TlsAddresses& addresses,
                          SidecarTls& tls) {
  if (addresses.upstream) {
    tls.upstream_files = {.ca_file = flags.upstream_ca_file,
                          .certificate_file = flags.upstream_certificate_file,
                          .key_file = flags.upstream_key_file,
                          .http2 = addresses.upstream_http2};
    HEADGATE_ASSIGN_OR_RETURN(tls.upstream, net::TlsContext::Load(tls.upstream_files));
    return absl::OkStatus();
  }
  if (!flags.upstream_ca_file.empty() || !flags.upstream_certificate_file.empty() ||
      !flags.upstream_key_file.empty() || !flags.upstream_name.empty())
    return WrongFlags("TLS to the upstream needs an --upstream with https:// or h2://");
  return absl::OkStatus();
}

}  // namespace

void SidecarTlsFlags::AddTo(std::vector<Flag>& flags) {
  flags.push_back({"--tls-certificate-file", &certificate_file});
  flags.push_back({"--tls-key-file", &key_file});
  flags.push_back({"--tls-client-ca-file", &client_ca_file});
  flags.push_back({"--tls-client-name", &client_name});
  flags.push_back({"--client-from-certificate", &client_from_certificate});
  flags.push_back({"--upstream-ca-file", &upstream_ca_file});
  flags.push_back({"--upstream-certificate-file", &upstream_certificate_file});
  flags.push_back({"--upstream-key-file", &upstream_key_file});
  flags.push_back({"--upstream-tls-name", &upstream_name});
}

absl::StatusOr<SidecarTls> ReadSidecarTls(const SidecarTlsFlags& flags,
                                          const TlsAddresses& addresses) {
  SidecarTls tls{.client_from_certificate = flags.client_from_certificate,
                 .upstream_name = flags.upstream_name};
  HEADGATE_ASSIGN_OR_RETURN(tls.clients, ClientsOf(flags, addresses));
  // On an address without TLS, a client could name itself.
  if (flags.client_from_certificate && (!addresses.all_listen || flags.client_ca_file.empty()))
    return WrongFlags(
        "--client-from-certificate needs --tls-client-ca-file, and tls: before each --listen");
  HEADGATE_RETURN_IF_ERROR(ReadUpstream(flags, addresses, tls));
  return tls;
}

}  // namespace headgate::app
