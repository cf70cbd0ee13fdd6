// The connections of Upstreams: how they begin, become free, drain, and end.
#include <algorithm>
#include <utility>

#include "headgate/proxy/upstreams.h"

namespace headgate::proxy {
namespace {

// The Connection Attempt Delay that RFC 8305 recommends.
constexpr base::Duration kAttemptDelay = std::chrono::milliseconds(250);

NoPlace NoPlaceAfter(UpstreamConnection::End end) {
  switch (end) {
    case UpstreamConnection::End::kConnectTimeout:
      return NoPlace::kTimeout;
    case UpstreamConnection::End::kUntrusted:
      return NoPlace::kUntrusted;
    case UpstreamConnection::End::kTlsFailed:
      return NoPlace::kTlsFailed;
    case UpstreamConnection::End::kNotConnected:
    case UpstreamConnection::End::kClosed:
      break;
  }
  return NoPlace::kRefused;
}

}  // namespace

void Upstreams::Open(Address& address, base::Instant now) {
  Link& link = *address.links.emplace_back(std::make_unique<Link>(*this, address, now));
  NoteUsed(address);
  ++connecting_;
  ++address.connecting;
  counters_.connections.Add();
  counters_.connects.Add();
  link.connection = connect_(address.id, link);
}

// Counts the connections in progress as if they were taken by requests of the first waiting client.
void Upstreams::OpenForQueue(base::Instant now) {
  const auto may_open = [&] {
    const uint64_t promised =
        (connecting_ - (AvoidsSlow(now) ? slow_ : 0)) * options_.exchanges_per_connection;
    FreePlaces free = CountFree(now);
    free.count -= std::min(free.count, promised);
    return promised < queue_.size() && MayServe(free);
  };
  while (!closed_ && may_open()) {
    Address* const address = Choose(Need::kPlaceOrConnection, queue_.front(), now);
    if (address == nullptr) return;
    // There is a free place: OnWoken gives it to the first waiting request.
    if (FreeLink(*address) != nullptr) return wake_();
    Open(*address, now);
  }
}

void Upstreams::OnConnected(Link& link, base::Instant now) {
  link.connected = true;
  link.address.has_accepted = true;
  link.address.connect_failed = false;
  NoteConnectEnd(link);
  NoteFree(link, now);
}

void Upstreams::NoteConnectEnd(Link& link) {
  --connecting_;
  --link.address.connecting;
  if (!std::exchange(link.is_slow, false)) return;
  --slow_;
  --link.address.slow;
}

void Upstreams::NoteSlow(base::Instant now) {
  const size_t before = slow_;
  for (const auto& address : addresses_) {
    if (address->connecting == address->slow) continue;
    for (const auto& link : address->links) {
      if (link->connected || link->is_slow || now - link->began < kAttemptDelay) continue;
      link->is_slow = true;
      ++address->slow;
      ++slow_;
    }
  }
  if (slow_ > before) OpenForQueue(now);
}

// This may run within a call of the session, so its places are counted later.
void Upstreams::NoteFree(Link& link, base::Instant now) {
  link.idle_since = now;
  NoteDraining(link);
  if (!link.drains && !std::exchange(link.is_free, true)) link.address.free.push_back(&link);
  if (!queue_.empty()) wake_();
}

// An HTTP/1 connection has one exchange at a time, so the bound on connections bounds requests too.
// Its connections therefore never count as draining, not even during their last request.
void Upstreams::NoteDraining(Link& link) {
  if (link.drains || !link.connection->speaks_http2()) return;
  Address& address = link.address;
  http::ClientSession& session = link.connection->session();
  if (session.worn() && address.draining < options_.connections_max) session.Retire();
  if (!session.finished()) return;
  link.drains = true;
  ++address.draining;
  address.outstanding_draining += link.outstanding;
}

void Upstreams::Bury(Link& link) {
  Address& address = link.address;
  if (link.is_free) std::erase(address.free, &link);
  if (link.drains) --address.draining;
  const auto at = std::find_if(address.links.begin(), address.links.end(),
                               [&](const auto& owned) { return owned.get() == &link; });
  dead_.push_back(std::move(*at));
  address.links.erase(at);
  counters_.connections.Subtract();
  wake_();
}

void Upstreams::OnClosed(Link& link, UpstreamConnection::End end, std::string_view why,
                         base::Instant now) {
  Address& address = link.address;
  const bool connected = link.connected;
  Bury(link);
  if (connected) return;
  NoteConnectEnd(link);
  address.connect_failed = true;
  counters_.connect_failures.Add();
  if (end == UpstreamConnection::End::kUntrusted || end == UpstreamConnection::End::kTlsFailed)
    counters_.tls_failures.Add();
  OnConnectFailure(address, now);
  OnConnectFailed(end, why, now);
}

// The first request in the queue has waited for this connection. It continues to wait as long as
// another address may accept one.
void Upstreams::OnConnectFailed(UpstreamConnection::End end, std::string_view why,
                                base::Instant now) {
  if (queue_.empty()) return;
  const bool all_failed = std::all_of(addresses_.begin(), addresses_.end(),
                                      [](const auto& one) { return one->connect_failed; });
  const size_t connects_max = std::min(options_.connects_max, addresses_.size());
  if (++queue_.front().failed_connects_ >= connects_max && all_failed) {
    counters_.queued.Subtract();
    queue_.TakeFirst().OnNoPlace(NoPlaceAfter(end), why, now);
  }
  OpenForQueue(now);
}

void Upstreams::EndLink(Link& link, base::Instant now) {
  link.connection->Close(now);
  if (!link.connected) NoteConnectEnd(link);
  Bury(link);
}

void Upstreams::OnTick(base::Instant now) {
  for (const auto& address : addresses_) EndIdle(*address, now);
  for (const auto& address : retired_) EndIdle(*address, now);
  std::erase_if(retired_, [](const auto& address) { return address->links.empty(); });
  NoteSlow(now);
}

void Upstreams::EndIdle(Address& address, base::Instant now) {
  for (size_t i = 0; i < address.links.size();) {
    Link& link = *address.links[i];
    const bool idle = link.outstanding == 0 && (link.connected || address.retired);
    if (idle && (address.retired || now - link.idle_since >= options_.idle_timeout)) {
      EndLink(link, now);
    } else {
      ++i;
    }
  }
}

}  // namespace headgate::proxy
