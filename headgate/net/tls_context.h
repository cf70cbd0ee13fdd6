// The settings that TLS connections share: certificates, keys and trusted authorities. Loaded once,
// used by many connections.
#pragma once

#include <memory>
#include <string>

#include "headgate/base/status.h"

struct ssl_ctx_st;

namespace headgate::net {

struct TlsOptions {
  // Certificates that sign the other end's (PEM). A client without it trusts the system's; a server
  // without it asks its clients for no certificate.
  std::string ca_file{};
  // Our own certificate chain and its key (PEM). Both or neither; a server needs them.
  std::string certificate_file{};
  std::string key_file{};
};

class TlsContext {
 public:
  // For connections that we open, and for those that we accept. InvalidArgument if a file cannot be
  // used; the message names it.
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
