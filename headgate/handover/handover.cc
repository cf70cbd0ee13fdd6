#include "headgate/handover/handover.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

#include "headgate/handover/channel.h"
#include "headgate/net/socket_address.h"

namespace headgate::handover {
namespace {

constexpr size_t kAddressesMax = 1024;
constexpr size_t kPeersMax = 8;
constexpr std::string_view kHello = "hello";
constexpr std::string_view kEnd = "end";
constexpr std::string_view kReady = "ready";
constexpr std::string_view kState = "state";
constexpr std::string_view kLate = "late";
// Followed by the id of the process that has the turn.
constexpr std::string_view kBusy = "busy ";

absl::Status OtherUsers(const std::string& path) {
  return absl::PermissionDeniedError(fmt::format("{} belongs to another user", path));
}

absl::Status CannotConnect(const std::string& path, int error) {
  const std::string what =
      fmt::format("cannot connect to {}: {}", path, std::generic_category().message(error));
  if (error == EPROTOTYPE)
    return absl::AlreadyExistsError(what + "; another program listens on this socket");
  return error == EACCES ? absl::PermissionDeniedError(what) : absl::UnavailableError(what);
}

absl::Status Late() {
  return absl::DeadlineExceededError(
      "this process was not ready in time; the old one continues to serve");
}

// For this user alone. Replaces only a socket that this user has left behind.
absl::StatusOr<net::FileDescriptor> ListenAt(const std::string& path) {
  const net::SocketFile file(path);
  if (file.is_socket() && !file.belongs_to_this_user()) return OtherUsers(path);
  return net::ListenOnUnix(path, {.type = SOCK_SEQPACKET, .backlog = kPeersMax, .mode = 0600});
}

}  // namespace

// ---- The new process

absl::StatusOr<std::optional<Predecessor>> Predecessor::Find(const std::string& path,
                                                             base::Duration timeout) {
  net::SocketFile file(path);
  if (!file.IsThere()) return std::optional<Predecessor>();
  if (!file.is_socket())
    return absl::AlreadyExistsError(fmt::format("{} is not a socket, and stays as it is", path));
  if (!file.belongs_to_this_user()) return OtherUsers(path);
  net::FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return CannotConnect(path, errno);
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(timeout).count();
  const timeval limit{.tv_sec = us / 1'000'000, .tv_usec = us % 1'000'000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const net::SocketAddress address = net::UnixSocket(path);
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return std::optional<Predecessor>();
    return CannotConnect(path, errno);
  }
  if (!ProcessOfThisUser(socket.get())) return OtherUsers(path);
  Predecessor found(std::move(file), std::move(socket));
  HEADGATE_RETURN_IF_ERROR(found.ReceiveAddresses());
  return std::optional<Predecessor>(std::move(found));
}

absl::Status Predecessor::ReceiveAddresses() {
  (void)SendMessage(connection_.get(), kHello);
  while (addresses_.size() < kAddressesMax) {
    std::optional<HandoverMessage> message = ReceiveMessage(connection_.get());
    if (!message) {
      if (errno == EAGAIN)
        return absl::DeadlineExceededError("the process that runs has not answered in time");
      return absl::FailedPreconditionError(
          "the process that runs has not handed over its addresses");
    }
    if (message->text == kEnd) return absl::OkStatus();
    if (message->text.starts_with(kBusy)) {
      return absl::AbortedError(fmt::format("another process is taking over already: {}",
                                            message->text.substr(kBusy.size())));
    }
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

// OK, too, if the old process has gone: it does not wait any more, but nobody else serves then.
absl::Status Predecessor::StillWaits() const {
  std::array<char, kLate.size()> text{};
  const ssize_t size = ::recv(connection_.get(), text.data(), text.size(), MSG_PEEK | MSG_DONTWAIT);
  return size == std::ssize(text) ? Late() : absl::OkStatus();
}

absl::StatusOr<SidecarState> Predecessor::SayReady() {
  addresses_.clear();
  if (!SendMessage(connection_.get(), kReady)) {
    HEADGATE_RETURN_IF_ERROR(StillWaits());
    return absl::UnavailableError("the process that ran before has gone");
  }
  const std::optional<HandoverMessage> message = ReceiveMessage(connection_.get());
  if (!message) {
    HEADGATE_RETURN_IF_ERROR(StillWaits());
  }
  if (message && message->text == kLate) return Late();
  if (!message || message->text != kState || message->descriptors.size() != 1)
    return absl::UnavailableError("the process that ran before has not passed on its state");
  const std::optional<std::string> bytes =
      BytesOf(message->descriptors.front(), kSidecarStateBytesMax);
  if (!bytes) return absl::InvalidArgumentError("the state is not a file that can be read");
  return ParseSidecarState(*bytes);
}

// ---- The old process

// A process that has connected.
class HandoverPoint::Peer {
 public:
  Peer(HandoverPoint& point, net::FileDescriptor connection, pid_t process)
      : connection_(std::move(connection)),
        process_(process),
        word_(point.loop_, connection_.get(), [&point, this] { point.OnWord(*this); }),
        silence_(point.loop_, [&point, this] { point.OnSilence(*this); }) {
    silence_.SetAfter(point.hello_timeout_);
  }

  int connection() const { return connection_.get(); }
  pid_t process() const { return process_; }
  void WaitFor(base::Duration time) { silence_.SetAfter(time); }

 private:
  const net::FileDescriptor connection_;
  const pid_t process_;
  net::Readable word_;
  net::Timer silence_;
};

absl::StatusOr<std::unique_ptr<HandoverPoint>> HandoverPoint::Open(const Options& options,
                                                                   std::vector<Address> addresses,
                                                                   net::EventLoop& loop,
                                                                   observe::Log& log, Calls calls) {
  // If a predecessor exists, the path must never be without a socket, so the new socket is renamed
  // to it last.
  const std::string& path = options.path;
  const bool replaces = options.before && options.before->IsThere();
  const std::string made = replaces ? path + ".new" : path;
  HEADGATE_ASSIGN_OR_RETURN(net::FileDescriptor listener, ListenAt(made));
  if (replaces && ::rename(made.c_str(), path.c_str()) != 0) {
    const int error = errno;
    net::SocketFile(made).Remove();
    return absl::UnavailableError(fmt::format("cannot rename {} to {}: {}", made, path,
                                              std::generic_category().message(error)));
  }
  return std::unique_ptr<HandoverPoint>(new HandoverPoint(options, std::move(addresses), loop, log,
                                                          std::move(listener), std::move(calls)));
}

HandoverPoint::HandoverPoint(const Options& options, std::vector<Address> addresses,
                             net::EventLoop& loop, observe::Log& log, net::FileDescriptor listener,
                             Calls calls)
    : file_(options.path),
      hello_timeout_(options.hello_timeout),
      ready_timeout_(options.ready_timeout),
      addresses_(std::move(addresses)),
      loop_(loop),
      log_(log),
      calls_(std::move(calls)),
      listener_(std::move(listener)),
      connections_(loop, listener_.get(), [this] { OnConnection(); }) {}

HandoverPoint::~HandoverPoint() { file_.Remove(); }

void HandoverPoint::OnConnection() {
  net::FileDescriptor socket(
      ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const std::optional<pid_t> process = socket ? ProcessOfThisUser(socket.get()) : std::nullopt;
  if (!process) return;
  if (peers_.size() == kPeersMax) {
    // At most one of these processes has said hello, and that one is kept.
    const auto oldest = std::find_if(peers_.begin(), peers_.end(),
                                     [this](const auto& peer) { return peer.get() != successor_; });
    DropSilent(**oldest, base::Duration(0));
  }
  peers_.push_back(std::make_unique<Peer>(*this, std::move(socket), *process));
}

void HandoverPoint::OnWord(Peer& peer) {
  const std::optional<HandoverMessage> message = ReceiveMessage(peer.connection());
  if (!message && (errno == EAGAIN || errno == EINTR)) return;
  const std::string_view word = message ? std::string_view(message->text) : std::string_view();
  if (word == kHello && &peer != successor_) return OnHello(peer);
  const bool is_ready = word == kReady && &peer == successor_;
  if (is_ready) SendState(peer);
  Drop(peer);
  if (is_ready) calls_.leave();
}

void HandoverPoint::OnHello(Peer& peer) {
  if (successor_ != nullptr) {
    (void)SendMessage(peer.connection(), fmt::format("{}{}", kBusy, successor_->process()));
    return Drop(peer);
  }
  if (!SendAddresses(peer)) return Drop(peer);
  successor_ = &peer;
  peer.WaitFor(ready_timeout_);
}

void HandoverPoint::OnSilence(Peer& peer) {
  if (&peer != successor_) return DropSilent(peer, hello_timeout_);
  (void)SendMessage(peer.connection(), kLate);
  DropSilent(peer, ready_timeout_);
}

void HandoverPoint::DropSilent(const Peer& peer, base::Duration after) {
  log_.Warning(
      "handover.peer_dropped",
      {{"process", uint64_t{static_cast<uint32_t>(peer.process())}},
       {"after", after},
       {"reason", std::string_view(&peer == successor_ ? "it has said hello, and then was not ready"
                                                       : "it has connected, and said nothing")},
       {"effect", std::string_view("this process continues to serve, and another may take over")}});
  Drop(peer);
}

void HandoverPoint::Drop(const Peer& peer) {
  if (successor_ == &peer) successor_ = nullptr;
  std::erase_if(peers_, [&peer](const auto& each) { return each.get() == &peer; });
}

bool HandoverPoint::SendAddresses(const Peer& peer) const {
  for (const Address& address : addresses_) {
    const std::string text = Write({.name = address.name, .bound = address.bound});
    for (size_t i = 0; i < address.sockets.size(); i += kHandoverSocketsMax) {
      const std::span<const int> rest = std::span(address.sockets).subspan(i);
      if (!SendMessage(peer.connection(), text,
                       rest.first(std::min(rest.size(), kHandoverSocketsMax))))
        return false;
    }
  }
  return SendMessage(peer.connection(), kEnd);
}

// A successor that does not get the state serves without it.
void HandoverPoint::SendState(const Peer& peer) const {
  const net::FileDescriptor file = FileWith(Write(calls_.state()));
  if (file) (void)SendMessage(peer.connection(), kState, std::array{file.get()});
}

}  // namespace headgate::handover
