// The certificates of the addresses with TLS on a running server: loaded at start, loaded again
// when one of their files changes.
#pragma once

#include <memory>
#include <span>

#include "headgate/base/status.h"
#include "headgate/follow/tls_files.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/tls_server.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"

namespace headgate::follow {

class Certificates {
 public:
  // `loop` and `log` must outlive this object, which lives on `loop`.
  Certificates(net::TlsServerOptions options, net::EventLoop& loop, observe::Log& log);

  // Loads the certificates for the first time, if the options name any, and follows their files.
  absl::Status LoadFirst();
  // Null without certificates.
  std::shared_ptr<const net::TlsServer> server() const { return server_; }
  // Reads all files again, changed or not.
  void Reload() { files_.Reload(); }
  const TlsFiles& files() const { return files_; }

 private:
  void WarnOfDates() const;

  const net::TlsServerOptions options_;
  observe::Log& log_;
  std::shared_ptr<net::TlsServer> server_;
  TlsFiles files_;
};

// Reports the reloads of all of them. From any thread.
void CollectCertificates(std::span<const TlsFiles* const> followed, observe::Sink& sink);

}  // namespace headgate::follow
