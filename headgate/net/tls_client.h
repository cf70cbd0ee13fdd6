// TLS for outgoing connections whose files may be replaced: they are read again when a connection
// is made and one of them has changed. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "headgate/base/status.h"
#include "headgate/net/tls_context.h"

namespace headgate::net {

class TlsClient {
 public:
  // InvalidArgument if a file cannot be used; the message names the file.
  static absl::StatusOr<std::unique_ptr<TlsClient>> Load(const TlsOptions& options);

  // Made from the files as they are now. If one of them cannot be used, made from the files as they
  // were read last: perhaps they are being replaced at this moment. The next call tries again.
  const std::shared_ptr<TlsContext>& Current();

 private:
  // Shows without reading a file whether it has changed.
  struct Stamp {
    uint64_t inode = 0;
    int64_t size_bytes = -1;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;

  explicit TlsClient(const TlsOptions& options) : options_(options) {}
  static Stamp StampOf(const std::string& path);
  Stamps StampsNow() const;

  const TlsOptions options_;
  std::shared_ptr<TlsContext> context_;
  Stamps stamps_;  // of the files in `context_`, before they were read
};

}  // namespace headgate::net
