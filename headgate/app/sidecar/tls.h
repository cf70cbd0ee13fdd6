// TLS of a sidecar, towards its clients and towards its upstream, read from flags.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headgate/app/settings/arguments.h"
#include "headgate/base/status.h"
#include "headgate/net/tls_context.h"

namespace headgate::app {

struct SidecarTlsFlags {
  std::vector<std::string> certificate_file{};
  std::vector<std::string> key_file{};
  std::string client_ca_file{};
  std::vector<std::string> client_name{};
  bool client_from_certificate = false;
  std::string upstream_ca_file{};
  std::string upstream_certificate_file{};
  std::string upstream_key_file{};
  std::string upstream_name{};

  void AddTo(std::vector<Flag>& flags);
};

struct SidecarTls {
  net::TlsServerOptions clients{};  // without certificates: none
  // The field with a client's id gets the name in the client's certificate.
  bool client_from_certificate = false;
  std::shared_ptr<net::TlsContext> upstream{};  // null: plain
  net::TlsOptions upstream_files{};             // that `upstream` was loaded from
  std::string upstream_name{};                  // empty: the host
};

// The addresses that the flags are for.
struct TlsAddresses {
  bool some_listen = false;  // with TLS
  bool all_listen = false;
  bool upstream = false;
  bool upstream_http2 = false;
};

// Reads all files. InvalidArgument says which flag is wrong.
absl::StatusOr<SidecarTls> ReadSidecarTls(const SidecarTlsFlags& flags,
                                          const TlsAddresses& addresses);

}  // namespace headgate::app
