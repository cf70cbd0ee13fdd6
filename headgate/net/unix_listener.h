// Listens at a path, on a Unix socket of any type, without harm to the files of other programs.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>

#include "headgate/base/status.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::net {

// The file that was at a path at one moment. The file of a bound socket stays unique until the
// socket is closed.
class SocketFile {
 public:
  // The file that is at the path now, if there is one.
  explicit SocketFile(std::string path);

  bool is_socket() const;
  bool belongs_to_this_user() const;
  // Whether this very file is still at the path.
  bool IsThere() const;
  // Does nothing if another file is at the path meanwhile.
  void Remove() const;

 private:
  std::string path_;
  struct stat seen_ {};
};

struct UnixListenOptions {
  int type = SOCK_STREAM;
  int backlog = 0;
  std::optional<uint32_t> mode{};  // of the file; absent: as the process's umask has it
};

// A non-blocking socket that listens. A socket file on which nobody answers is replaced; any other
// file stays as it is, and is an error that names the kind of file. No file is left after an error.
absl::StatusOr<FileDescriptor> ListenOnUnix(const std::string& path,
                                            const UnixListenOptions& options);

}  // namespace headgate::net
