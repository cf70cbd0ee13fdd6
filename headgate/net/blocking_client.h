// The other end of a connection for command-line tools and tests: every step waits, and every wait
// has an end.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

class BlockingClient {
 public:
  // `timeout` bounds connecting here and each later step. Unavailable where nobody answers.
  static absl::StatusOr<BlockingClient> Connect(const Endpoint& endpoint, base::Duration timeout);

  // Unavailable where the other end is gone, DeadlineExceeded where it takes too long.
  absl::Status Send(std::string_view bytes);
  // The next bytes, at least one; empty at the end.
  absl::StatusOr<std::string> ReadSome();
  // All until the end, at most `bytes_max`.
  absl::StatusOr<std::string> ReadToEnd(size_t bytes_max);
  // No more will be sent; answers can still be read.
  void FinishSending();

  int fd() const { return socket_.get(); }

 private:
  BlockingClient(FileDescriptor socket, const Endpoint& endpoint, base::Duration timeout);
  absl::Status WaitFor(short events);

  FileDescriptor socket_;
  std::string name_;
  base::Duration timeout_;
};

}  // namespace headgate::net
