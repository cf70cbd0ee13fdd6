// Settings shared by TLS connections: certificates, keys and trusted authorities. Loaded once, used
// by many connections.
#pragma once

#include <memory>
#include <string>

#include "headgate/base/status.h"

struct ssl_ctx_st;

namespace headgate::net {

struct TlsOptions {
  // The trusted authorities for the peer's certificate (PEM). If empty, a client trusts the
  // system's authorities and a server requests no client certificate.
  std::string ca_file{};
  // The certificate chain of this side and its key (PEM). Both or neither; a server requires them.
  std::string certificate_file{};
  std::string key_file{};
};

class TlsContext {
 public:
  // Load is for outgoing connections, LoadServer for accepted ones. InvalidArgument if a file
  // cannot be used; the message names the file.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Load(const TlsOptions& options);
  static absl::StatusOr<std::shared_ptr<TlsContext>> LoadServer(const TlsOptions& options);
  ~TlsContext();

 private:
  friend class TlsTransport;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  ssl_ctx_st* native() const;
  bool is_server() const;

  const std::unique_ptr<State> state_;
};

}  // namespace headgate::net
