// The certificates of the addresses with TLS on a running server: loaded at start, loaded again
// when one of their files changes.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "headgate/app/configuration.h"
#include "headgate/app/settings.h"
#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/tls_server.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/watch/file/file_source.h"

namespace headgate::app {

net::TlsServerOptions TlsServerOptionsOf(const Settings& settings);

// Adds the problems of the certificate files to those of the configuration.
void CheckCertificates(Configuration& configuration);

class FollowedCertificates {
 public:
  // `loop` and `log` must outlive this object, which lives on `loop`.
  FollowedCertificates(net::TlsServerOptions options, net::EventLoop& loop, observe::Log& log);

  // Loads the certificates for the first time, if the options name any, and follows their files.
  absl::Status LoadFirst();
  // Null without certificates.
  std::shared_ptr<const net::TlsServer> server() const { return server_; }
  // Reads all files again, changed or not.
  void Reload();

  // From any thread.
  void Collect(observe::Sink& sink) const;

 private:
  void OnChange();

  const net::TlsServerOptions options_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::shared_ptr<net::TlsServer> server_;
  std::vector<std::string> paths_;
  std::unique_ptr<watch::file::FileSource> source_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace headgate::app
