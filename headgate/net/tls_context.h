// Settings shared by TLS connections: certificates, keys and trusted authorities. Loaded once, used
// by many connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// A file of TlsOptions that cannot be used.
struct TlsProblem {
  enum class File : uint8_t { kCa, kCertificate, kKey };
  File file;
  std::string what;  // a sentence that names the file
};

// Returns all files of `options` that cannot be used. Does not read a certificate without a key, or
// a key without a certificate.
std::vector<TlsProblem> ProblemsOfFiles(const TlsOptions& options);

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
