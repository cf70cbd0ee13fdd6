#include "headgate/net/unix_listener.h"

#include <fmt/format.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "headgate/net/socket_address.h"

namespace headgate::net {
namespace {

// Otherwise the file would block the path forever.
void RemoveStaleSocket(const std::string& path) {
  const SocketFile file(path);
  if (!file.is_socket()) return;
  // A server of another type refuses the connection with EPROTOTYPE, so it is not disturbed.
  FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const SocketAddress address = UnixSocket(path);
  if (probe && ::connect(probe.get(), address.get(), address.size) != 0 && errno == ECONNREFUSED)
    file.Remove();
}

absl::Status ListenError(const std::string& path, int error) {
  const std::string what =
      fmt::format("cannot listen on unix:{}: {}", path, std::generic_category().message(error));
  if (error == EADDRINUSE && !SocketFile(path).is_socket())
    return absl::AlreadyExistsError(what + "; the file there is not a socket");
  if (error == EADDRINUSE)
    return absl::AlreadyExistsError(what +
                                    "; another process has it: stop it or choose another path");
  if (error == ENOENT)
    return absl::NotFoundError(what + "; make the directory, or choose a path in another one");
  if (error == EACCES)
    return absl::PermissionDeniedError(what + "; choose a directory you may write");
  return absl::UnavailableError(what);
}

}  // namespace

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
  if (::lstat(path_.c_str(), &seen_) != 0) seen_ = {};
}

bool SocketFile::is_socket() const { return S_ISSOCK(seen_.st_mode); }

bool SocketFile::belongs_to_this_user() const {
  return seen_.st_mode != 0 && seen_.st_uid == ::geteuid();
}

bool SocketFile::IsThere() const {
  struct stat now {};
  return ::lstat(path_.c_str(), &now) == 0 && seen_.st_mode != 0 && now.st_dev == seen_.st_dev &&
         now.st_ino == seen_.st_ino;
}

void SocketFile::Remove() const {
  if (IsThere()) ::unlink(path_.c_str());
}

absl::StatusOr<FileDescriptor> ListenOnUnix(const std::string& path,
                                            const UnixListenOptions& options) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is too long for a Unix socket: the system takes at most {} bytes", path,
                    sizeof(sockaddr_un::sun_path) - 1));
  }
  RemoveStaleSocket(path);
  FileDescriptor socket(::socket(AF_UNIX, options.type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return ListenError(path, errno);
  const SocketAddress address = UnixSocket(path);
  // The file begins with this mode without the bits of the umask, so it is never open to more.
  if (options.mode && ::fchmod(socket.get(), *options.mode) != 0) return ListenError(path, errno);
  if (::bind(socket.get(), address.get(), address.size) != 0) return ListenError(path, errno);
  const SocketFile file(path);
  if ((!options.mode || ::chmod(path.c_str(), *options.mode) == 0) &&
      ::listen(socket.get(), options.backlog) == 0)
    return socket;
  const int error = errno;
  file.Remove();
  return ListenError(path, error);
}

}  // namespace headgate::net
