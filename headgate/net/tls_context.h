// Settings shared by TLS connections: certificates, keys and trusted authorities. Loaded once, used
// by many connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/ticket_keys.h"

struct ssl_st;

namespace headgate::net {

// For outgoing connections.
struct TlsOptions {
  // The trusted authorities for the server's certificate (PEM). If empty, the system's.
  std::string ca_file{};
  // The certificate chain of this side and its key (PEM). Both or neither.
  std::string certificate_file{};
  std::string key_file{};
  // Asks the server for HTTP/2 by ALPN, and refuses one that does not agree.
  bool http2 = false;
};

// For accepted connections.
struct TlsServerOptions {
  // A certificate chain and its key (PEM).
  struct Certificate {
    std::string certificate_file{};
    std::string key_file{};
  };
  // At least one. A client gets the first one that is for the server name it asked for (SNI); if it
  // asked for none, or there is none for it, the first of all.
  std::vector<Certificate> certificates{};
  // If not empty, clients need a certificate that one of these authorities (PEM) has signed.
  std::string client_ca_file{};
  // If not empty, one of these names must be among the names of the client's certificate: its
  // subject alternative names of the kinds DNS, URI and email, compared as a whole. The common name
  // does not count: it has no kind (RFC 9525, 2).
  std::vector<std::string> client_names{};
  // Whether clients that offer HTTP/2 by ALPN get it, rather than HTTP/1.1.
  bool http2 = false;
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
std::vector<TlsProblem> ProblemsOfFiles(const TlsServerOptions& options);

class TlsContext {
 public:
  // Load is for outgoing connections, LoadServer for accepted ones (tls_server.h). InvalidArgument
  // if a file cannot be used; the message names the file.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Load(const TlsOptions& options);
  static absl::StatusOr<std::shared_ptr<TlsContext>> LoadServer(
      const TlsServerOptions& options, std::shared_ptr<TicketKeys> ticket_keys);
  ~TlsContext();

  // A sentence for each certificate or trusted authority that has expired or is not valid yet, so
  // that peers refuse it.
  std::vector<std::string> CertificatesOutOfDate(base::WallTime now) const;

 private:
  friend class TlsTransport;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  // The caller frees it, and keeps this context alive until then.
  ssl_st* NewConnection() const;
  bool is_server() const;
  bool needs_http2() const;

  const std::unique_ptr<State> state_;
};

}  // namespace headgate::net
