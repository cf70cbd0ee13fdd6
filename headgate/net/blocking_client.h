// A blocking client connection for command-line tools and tests. Every wait is bounded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

class BlockingClient {
 public:
  // `timeout` bounds connecting and each later step. Unavailable if nothing answers.
  static absl::StatusOr<BlockingClient> Connect(const Endpoint& endpoint, base::Duration timeout);
  // `timeout` bounds connecting and all later steps together, so that a server that sends a byte
  // now and then cannot hold the client.
  static absl::StatusOr<BlockingClient> ConnectForOneExchange(const Endpoint& endpoint,
                                                              base::Duration timeout);

  // Unavailable if the peer is gone, DeadlineExceeded if sending takes too long.
  absl::Status Send(std::string_view bytes);
  // Returns the next bytes, at least one; empty at the end of the stream.
  absl::StatusOr<std::string> ReadSome();
  // Reads to the end of the stream, at most `bytes_max` bytes.
  absl::StatusOr<std::string> ReadToEnd(size_t bytes_max);
  // Shuts down the sending side; responses can still be read.
  void FinishSending();

  int fd() const { return socket_.get(); }

 private:
  BlockingClient(FileDescriptor socket, const Endpoint& endpoint, base::Duration timeout);
  absl::Status WaitFor(short events);
  // How long the next step may take; 0 or less if the time is up.
  base::Duration TimeLeft() const;
  absl::Status TimeIsUp() const;

  FileDescriptor socket_;
  std::string name_;
  base::Duration timeout_;
  std::optional<base::BootTime> deadline_{};  // of all steps together
};

}  // namespace headgate::net
