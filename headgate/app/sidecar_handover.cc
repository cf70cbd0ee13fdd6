#include "headgate/app/sidecar_handover.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>
#include <utility>

#include "headgate/net/socket_address.h"

namespace headgate::app {
namespace {

// Linux passes at most 253 descriptors with a message.
constexpr size_t kSocketsPerMessage = 128;
constexpr size_t kMessageBytesMax = 4096;
constexpr size_t kAddressesMax = 1024;
constexpr std::string_view kEnd = "end";
constexpr std::string_view kReady = "ready";
constexpr std::string_view kState = "state";

absl::Status Failed(std::string_view what, const std::string& path) {
  return absl::UnavailableError(
      fmt::format("{} {}: {}", what, path, std::generic_category().message(errno)));
}

bool IsOfThisUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

uint64_t FileNumber(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_ino) : 0;
}

// The memory of the descriptors of one message.
union Ancillary {
  cmsghdr header;
  std::array<char, CMSG_SPACE(sizeof(int) * kSocketsPerMessage)> bytes;
};

bool Send(int socket, std::string_view text, std::span<const int> descriptors) {
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

struct Message {
  std::string text;
  std::vector<net::FileDescriptor> descriptors;
};

// Nothing at the end of the connection, or if nothing came in time.
std::optional<Message> Receive(int socket) {
  Message received{.text = std::string(kMessageBytesMax, '\0'), .descriptors = {}};
  iovec part{.iov_base = received.text.data(), .iov_len = received.text.size()};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = ancillary.bytes.size();
  errno = 0;  // the end is not an error
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

// Empty if the system has no memory for it.
net::FileDescriptor FileWith(std::string_view bytes) {
  net::FileDescriptor file(::memfd_create("headgate-state", MFD_CLOEXEC));
  while (file && !bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written <= 0) return net::FileDescriptor();
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return file;
}

// Nothing if it is not a file, or is too long.
std::optional<std::string> BytesOf(const net::FileDescriptor& file) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 0 ||
      static_cast<uint64_t>(info.st_size) > kSidecarStateBytesMax)
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

}  // namespace

// ---- The new process

absl::StatusOr<std::optional<Predecessor>> Predecessor::Find(const std::string& path,
                                                             base::Duration timeout) {
  net::FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return Failed("cannot connect to", path);
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval limit{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const net::SocketAddress address = net::UnixSocket(path);
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return std::optional<Predecessor>();
    return Failed("cannot connect to", path);
  }
  if (!IsOfThisUser(socket.get()))
    return absl::PermissionDeniedError(fmt::format("{} belongs to another user's process", path));
  Predecessor found(std::move(socket));
  HEADGATE_RETURN_IF_ERROR(found.ReceiveAddresses());
  return std::optional<Predecessor>(std::move(found));
}

absl::Status Predecessor::ReceiveAddresses() {
  while (addresses_.size() < kAddressesMax) {
    std::optional<Message> message = Receive(connection_.get());
    if (!message)
      return absl::UnavailableError("the process that runs has not handed over its addresses");
    if (message->text == kEnd) return absl::OkStatus();
    HEADGATE_ASSIGN_OR_RETURN(AddressMessage address, ParseAddressMessage(message->text));
    addresses_.push_back({.name = std::move(address.name),
                          .bound = std::move(address.bound),
                          .sockets = std::move(message->descriptors)});
  }
  return absl::ResourceExhaustedError("the process that runs has too many addresses");
}

std::optional<Predecessor::Address> Predecessor::Take(std::string_view name) {
  std::optional<Address> taken;
  for (auto at = addresses_.begin(); at != addresses_.end();) {
    // The sockets of an address may have come in several messages.
    if (at->name != name || (taken && taken->bound != at->bound)) {
      ++at;
      continue;
    }
    if (!taken) {
      taken = std::move(*at);
    } else {
      for (net::FileDescriptor& socket : at->sockets) taken->sockets.push_back(std::move(socket));
    }
    at = addresses_.erase(at);
  }
  return taken;
}

absl::StatusOr<SidecarState> Predecessor::SayReady() {
  addresses_.clear();
  if (!Send(connection_.get(), kReady, {}))
    return absl::UnavailableError("the process that ran before has gone");
  const std::optional<Message> message = Receive(connection_.get());
  if (!message || message->text != kState || message->descriptors.size() != 1)
    return absl::UnavailableError("the process that ran before has not passed on its state");
  const std::optional<std::string> bytes = BytesOf(message->descriptors.front());
  if (!bytes) return absl::InvalidArgumentError("the state is not a file that can be read");
  return ParseSidecarState(*bytes);
}

// ---- The old process

absl::StatusOr<std::unique_ptr<HandoverPoint>> HandoverPoint::Open(const std::string& path,
                                                                   std::vector<Address> addresses,
                                                                   net::EventLoop& loop,
                                                                   Calls calls) {
  // Bound under another name first, so that there is always a process at the path.
  const std::string made = path + ".new";
  if (made.size() >= sizeof(sockaddr_un::sun_path))
    return absl::InvalidArgumentError(fmt::format("{} is too long for a Unix socket", path));
  net::FileDescriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const net::SocketAddress address = net::UnixSocket(made);
  ::unlink(made.c_str());
  if (!listener || ::bind(listener.get(), address.get(), address.size) != 0 ||
      ::chmod(made.c_str(), 0600) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::rename(made.c_str(), path.c_str()) != 0)
    return Failed("cannot listen on", path);
  return std::unique_ptr<HandoverPoint>(
      new HandoverPoint(path, std::move(addresses), loop, std::move(listener), std::move(calls)));
}

HandoverPoint::HandoverPoint(std::string path, std::vector<Address> addresses, net::EventLoop& loop,
                             net::FileDescriptor listener, Calls calls)
    : path_(std::move(path)),
      file_(FileNumber(path_)),
      addresses_(std::move(addresses)),
      loop_(loop),
      calls_(std::move(calls)),
      listener_(std::move(listener)),
      connections_(loop, listener_.get(), [this] { OnConnection(); }) {}

HandoverPoint::~HandoverPoint() {
  if (FileNumber(path_) == file_) ::unlink(path_.c_str());
}

// A second successor is refused while the first one prepares.
void HandoverPoint::OnConnection() {
  if (successor_) OnWord();  // perhaps it has ended
  net::FileDescriptor socket(
      ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket || successor_ || !IsOfThisUser(socket.get())) return;
  successor_ = std::move(socket);
  if (!SendAddresses()) {
    successor_ = net::FileDescriptor();
    return;
  }
  word_.emplace(loop_, successor_.get(), [this] { OnWord(); });
}

bool HandoverPoint::SendAddresses() const {
  for (const Address& address : addresses_) {
    const std::string text = Write({.name = address.name, .bound = address.bound});
    for (size_t i = 0; i < address.sockets.size(); i += kSocketsPerMessage) {
      const std::span<const int> rest = std::span(address.sockets).subspan(i);
      if (!Send(successor_.get(), text, rest.first(std::min(rest.size(), kSocketsPerMessage))))
        return false;
    }
  }
  return Send(successor_.get(), kEnd, {});
}

void HandoverPoint::OnWord() {
  const std::optional<Message> message = Receive(successor_.get());
  if (!message && (errno == EAGAIN || errno == EINTR)) return;
  const bool is_ready = message && message->text == kReady;
  if (is_ready) SendState();
  word_.reset();
  successor_ = net::FileDescriptor();
  if (is_ready) calls_.leave();
}

// A successor that does not get it goes on without it.
void HandoverPoint::SendState() const {
  const net::FileDescriptor file = FileWith(Write(calls_.state()));
  if (file) (void)Send(successor_.get(), kState, std::array{file.get()});
}

}  // namespace headgate::app
