// TLS for accepted connections: the certificates of a server, which can be replaced while it runs.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/tls_context.h"

namespace headgate::net {

class TlsServer {
 public:
  // InvalidArgument if a file cannot be used; the message names the file.
  static absl::StatusOr<std::shared_ptr<TlsServer>> Load(const TlsServerOptions& options);

  // Reads all files again. New connections use them; open connections keep the old ones. If a file
  // cannot be used, everything stays as it was. For one thread at a time.
  absl::Status Reload();

  // The certificates for new connections. Thread-safe.
  std::shared_ptr<const TlsContext> current() const { return current_.load(); }

 private:
  explicit TlsServer(TlsServerOptions options);

  const TlsServerOptions options_;
  // Kept when the files are read again, so that clients can resume their sessions.
  const std::shared_ptr<TicketKeys> ticket_keys_;
  std::atomic<std::shared_ptr<const TlsContext>> current_;
};

}  // namespace headgate::net
