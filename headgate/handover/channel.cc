#include "headgate/handover/channel.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace headgate::handover {
namespace {

constexpr size_t kMessageBytesMax = 4096;

// The memory of the descriptors of one message.
union Ancillary {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kHandoverSocketsMax)> bytes;
};

}  // namespace

bool SendMessage(int socket, std::string_view text, std::span<const int> descriptors) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = ancillary.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == std::ssize(text);
}

std::optional<HandoverMessage> ReceiveMessage(int socket) {
  HandoverMessage received{.text = std::string(kMessageBytesMax, '\0'), .descriptors = {}};
  iovec part{.iov_base = received.text.data(), .iov_len = received.text.size()};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = ancillary.bytes.size();
  errno = 0;  // the end of the connection is not an error
  const ssize_t size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* header = size < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      received.descriptors.emplace_back(descriptor);
    }
  }
  if (size <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return std::nullopt;
  received.text.resize(static_cast<size_t>(size));
  return received;
}

std::optional<pid_t> ProcessOfThisUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
    return std::nullopt;
  return peer.pid;
}

net::FileDescriptor FileWith(std::string_view bytes) {
  net::FileDescriptor file(::memfd_create("headgate-state", MFD_CLOEXEC));
  while (file && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written <= 0) return net::FileDescriptor();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

std::optional<std::string> BytesOf(const net::FileDescriptor& file, size_t bytes_max) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0 ||
      static_cast<uint64_t>(info.st_size) > bytes_max)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  for (size_t read = 0; read < bytes.size();) {
    const ssize_t more =
        ::pread(file.get(), bytes.data() + read, bytes.size() - read, static_cast<off_t>(read));
    if (more <= 0) return std::nullopt;
    read += static_cast<size_t>(more);
  }
  return bytes;
}

}  // namespace headgate::handover
