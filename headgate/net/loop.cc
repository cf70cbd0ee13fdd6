#include "headgate/net/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "headgate/net/connection.h"
#include "headgate/net/output_buffer.h"
#include "headgate/net/proxied_arrival.h"
#include "headgate/net/socket_option.h"

namespace headgate::net {
namespace {

// A loop adds up the buffers of all loops only after its own buffers have grown by this much, so
// the sum is computed rarely. In total the loops exceed the budget by at most this much each, plus
// one read and kUrgentBytes.
constexpr size_t kBufferGrowthStep = size_t{64} << 10;
// If the budget is exceeded by more than this, a loop closes its own connections even if other
// loops hold more.
constexpr uint64_t kUrgentBytes = uint64_t{16} << 20;
// Shedding stops at this fraction of the budget, so that it is not needed again at once.
constexpr size_t kShedToSixteenths = 15;
// A connection that does not read must not fill the system's memory: by default the system buffers
// up to 4 MiB (tcp_wmem) for it. The system stops taking output when this much is not sent yet, …
constexpr int kUnsentBytesMax = 64 << 10;
// … or when this much is not acknowledged. The system doubles this number to include its own
// overhead. At a round trip of 100 ms a connection can still carry 2 MB/s.
constexpr int kSendBufferBytes = 128 << 10;

uint32_t PerAddressMax(const ServerOptions& options) {
  if (options.connections_per_address_max != 0) return options.connections_per_address_max;
  return std::max(1u, options.connections_max / 4);
}

}  // namespace

Shared::Shared(const ServerOptions& server_options, const base::DisciplinedClock& disciplined_clock,
               SpareFiles& spares)
    : options(server_options),
      clock(disciplined_clock),
      spare_files(spares),
      limits(server_options.connections_max, PerAddressMax(server_options)) {
  for (uint32_t i = 0; i < options.threads; ++i) loops.push_back(std::make_unique<Loop>(*this));
}

Loop::Loop(Shared& shared) : shared_(shared), events_(shared.clock.source()) {}

Loop::~Loop() {
  Stop();
  acceptors_.clear();
  arrivals_.clear();
  while (connections_ != nullptr) delete connections_;
}

void Loop::AddAcceptor(FileDescriptor socket, size_t spares_kept, Acceptor::HandOver hand_over) {
  acceptors_.push_back(
      std::make_unique<Acceptor>(*this, std::move(socket), spares_kept, std::move(hand_over)));
}

void Loop::Start() {
  for (const auto& acceptor : acceptors_) acceptor->Start();
  tick_due_ = base::MonotonicNow() + shared_.options.tick;
  tick_.SetAfter(shared_.options.tick);
  thread_ = std::thread([this] { events_.Run(); });
}

void Loop::Stop() {
  events_.Stop();
  if (thread_.joinable()) thread_.join();
}

void Loop::ReleaseOutput() { ReleaseBuffer(output_); }

void Loop::Arrive(FileDescriptor socket, const sockaddr_storage& address, AcceptedWith with,
                  const Listener& listener) {
  if (address.ss_family != AF_UNIX) {
    SetOption(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    SetOption(socket.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytesMax);
    SetOption(socket.get(), SOL_SOCKET, SO_SNDBUF, kSendBufferBytes);
  }
  const Peer peer = PeerOf(address);
  // Spare descriptors serve clients only on addresses with reserved places.
  if (with == AcceptedWith::kSpareFile && !listener.has_reserved_places) {
    counters_.refused_no_files.Add();
    return Refuse(std::move(socket), peer, listener);
  }
  if (listener.proxies.Trusts(peer)) return AwaitProxyHeader(std::move(socket), peer, listener);
  Adopt(std::move(socket), peer, listener);
}

void Loop::AwaitProxyHeader(FileDescriptor socket, const Peer& proxy, const Listener& listener) {
  const size_t awaited_max =
      std::max<size_t>(1, shared_.options.proxy_headers_awaited_max / shared_.loops.size());
  if (arrivals_.size() >= awaited_max) GiveUp(*arrivals_.front());
  const base::Instant deadline = shared_.clock.Now() + shared_.options.proxy_header_timeout;
  arrivals_.push_back(
      std::make_unique<ProxiedArrival>(*this, std::move(socket), proxy, listener, deadline));
  arrivals_.back()->Read();
}

std::unique_ptr<ProxiedArrival> Loop::Forget(ProxiedArrival& arrival) {
  const auto found = std::find_if(arrivals_.begin(), arrivals_.end(),
                                  [&](const auto& held) { return held.get() == &arrival; });
  std::unique_ptr<ProxiedArrival> forgotten = std::move(*found);
  arrivals_.erase(found);
  return forgotten;
}

void Loop::GiveUp(ProxiedArrival& arrival) {
  counters_.refused_proxy_header.Add();
  (void)Forget(arrival);
}

void Loop::Adopt(FileDescriptor socket, const Peer& peer, const Listener& listener) {
  ConnectionLimits::Refusal refusal{};
  std::optional<ConnectionLimits::Slot> slot = listener.limits.Enter(KeyOf(peer), refusal);
  if (!slot) {
    (listener.has_reserved_places                   ? counters_.refused_reserved_limit
     : refusal == ConnectionLimits::Refusal::kTotal ? counters_.refused_total_limit
                                                    : counters_.refused_address_limit)
        .Add();
    return Refuse(std::move(socket), peer, listener);
  }
  counters_.connections_accepted.Add();
  auto* const connection =
      new Connection(*this, std::move(socket), std::move(slot), peer, listener);
  connection->Start();
}

// Keeps a refused connection until its client has shown which protocol it speaks, to tell it the
// reason.
void Loop::Refuse(FileDescriptor socket, const Peer& peer, const Listener& listener) {
  const size_t refused_max =
      std::max<size_t>(1, shared_.options.refusals_max / shared_.loops.size());
  if (refused_.size() >= refused_max) MakeWayForRefusal();
  auto* const connection = new Connection(*this, std::move(socket), std::nullopt, peer, listener);
  refused_.push_back(connection);
  connection->Start();
}

// Closes the refused connection that has waited longest.
void Loop::MakeWayForRefusal() {
  Connection* const oldest = refused_.front();
  refused_.erase(refused_.begin());
  oldest->CutOff();
  made_way_ = true;
}

void Loop::MakeWayForAll() {
  while (!refused_.empty()) MakeWayForRefusal();
}

// If the process was stopped, or a turn took long, the bytes that arrived meanwhile are read before
// a deadline ends their connection.
void Loop::Tick() {
  const base::MonotonicTime called_at = base::MonotonicNow();
  const base::MonotonicTime due = std::exchange(tick_due_, called_at + shared_.options.tick);
  tick_.SetAfter(shared_.options.tick);
  const bool is_late = called_at - due > shared_.options.tick;
  if (is_late && !std::exchange(passed_over_, true)) return;
  passed_over_ = false;
  const base::Instant now = shared_.clock.Now();
  for (Connection* connection = connections_; connection != nullptr;
       connection = connection->next()) {
    connection->OnTick(now);
  }
  while (!arrivals_.empty() && arrivals_.front()->deadline() <= now) GiveUp(*arrivals_.front());
}

void Loop::Bury(Connection& connection) {
  closed_.push_back(&connection);
  events_.AtEndOfTurn(bury_);
}

void Loop::DestroyClosed() {
  // closed_ does not grow meanwhile: no destructor closes another connection.
  for (Connection* const connection : closed_) delete connection;
  closed_.clear();
}

void Loop::ResumeAtEndOfTurn(Connection& connection) {
  woken_.push_back(&connection);
  events_.AtEndOfTurn(resume_);
}

void Loop::ResumeWoken() {
  const base::Instant now = shared_.clock.Now();
  // Connections that are woken meanwhile are called after these.
  const size_t count = woken_.size();
  for (size_t i = 0; i < count; ++i) woken_[i]->Resume(now);
  woken_.erase(woken_.begin(), woken_.begin() + static_cast<ptrdiff_t>(count));
}

void Loop::OnBuffersChanged(size_t held, size_t now_held) {
  counters_.buffer_bytes.Subtract(held);
  counters_.buffer_bytes.Add(now_held);
  if (now_held <= held) return;
  buffer_growth_ += now_held - held;
  if (buffer_growth_ < kBufferGrowthStep) return;
  buffer_growth_ = 0;
  shed_due_ = true;
  events_.AtEndOfTurn(shed_);
}

// Closes the largest and slowest connections if all loops together exceed the budget. Each loop
// closes its own connections, and none goes below its share of the target. The loop that holds most
// must then close the rest.
void Loop::ShedBuffers() {
  shed_due_ = false;
  const uint64_t budget = shared_.options.buffer_bytes_max;
  const uint64_t target = budget / 16 * kShedToSixteenths;
  const uint64_t share = target / shared_.loops.size();
  uint64_t total = 0;
  Loop* largest = this;
  for (const auto& loop : shared_.loops) {
    total += loop->buffer_bytes();
    if (loop->buffer_bytes() > largest->buffer_bytes()) largest = loop.get();
  }
  if (total <= budget) return;
  const base::Instant now = shared_.clock.Now();
  // Requests may have released memory elsewhere, without an event of their connections.
  const uint64_t counted = buffer_bytes();
  for (Connection* connection = connections_; connection != nullptr;
       connection = connection->next())
    connection->CountBuffers(now);
  total += buffer_bytes() - counted;
  if (total <= budget) return;
  // Another loop's thread may be delayed, so this loop does not rely on it forever.
  const bool is_urgent = total > budget + kUrgentBytes;
  const uint64_t kept = is_urgent ? 0 : share;
  if (buffer_bytes() <= kept) return largest->Post([largest] { largest->ShedBuffers(); });

  std::vector<std::pair<uint64_t, Connection*>> by_cost;
  for (Connection* connection = connections_; connection != nullptr;
       connection = connection->next()) {
    if (const uint64_t cost = connection->BufferCost(now); cost > 0)
      by_cost.emplace_back(cost, connection);
  }
  std::sort(by_cost.begin(), by_cost.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [cost, connection] : by_cost) {
    if (total <= target || buffer_bytes() <= kept) break;
    const uint64_t before = buffer_bytes();
    connection->GiveUp(Session::GivenUp::kNoBuffers, now);
    total -= before - buffer_bytes();
    counters_.buffers_shed.Add();
  }
  if (total > budget && largest != this) largest->Post([largest] { largest->ShedBuffers(); });
}

void Loop::Drain(DrainKind kind) {
  if (draining_) return;
  has_successor_ = kind == DrainKind::kToSuccessor;
  // Clients that are already connected to this socket must still be served.
  if (!has_successor_)
    for (const auto& acceptor : acceptors_) acceptor->AcceptAll();
  draining_ = true;
  acceptors_.clear();
  // The proxies of these connections have not sent a whole PROXY header, so no request has arrived.
  if (!has_successor_) arrivals_.clear();
  for (Connection* connection = connections_; connection != nullptr;
       connection = connection->next()) {
    connection->OnDrain();
  }
}

void Loop::CutOff() {
  for (Connection* connection = connections_; connection != nullptr;
       connection = connection->next()) {
    if (connection->in_request()) counters_.drain_cutoffs.Add();
    connection->CutOff();
  }
}

}  // namespace headgate::net
