// Addresses, places and the queue; upstreams_connections.cc has the connections. A request gets a
// place in two ways: at once (Take), if its client is within its part and nobody waits before it,
// or later from the queue (OnWoken), at the end of a turn. Invariant: a new request gets a place at
// once only if the first request in the queue may not take it.
#include "headgate/proxy/upstreams.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/proxy/dynamic_threshold.h"

namespace headgate::proxy {
namespace {

// An address with fewer places than this reserves none, because a single client could use too few
// of them otherwise.
constexpr uint64_t kPlacesToKeepOne = 4;

}  // namespace

Upstreams::Upstreams(const UpstreamsOptions& options, Connect connect, UpstreamsCounters& counters,
                     std::function<void()> wake)
    : options_(options),
      connect_(std::move(connect)),
      counters_(counters),
      wake_(std::move(wake)) {}

Upstreams::~Upstreams() { HEADGATE_CHECK(queue_.empty()); }

// Null if `from` does not have it.
std::unique_ptr<Upstreams::Address> Upstreams::TakeOut(Addresses& from, size_t id) {
  const auto at = std::find_if(from.begin(), from.end(),
                               [&](const auto& address) { return address->id == id; });
  if (at == from.end()) return nullptr;
  std::unique_ptr<Address> taken = std::move(*at);
  from.erase(at);
  return taken;
}

void Upstreams::SetAddresses(std::span<const ServiceAddress> to, base::Instant now) {
  HEADGATE_CHECK(!to.empty());
  Addresses old = std::exchange(addresses_, {});
  for (const ServiceAddress& entry : to) {
    std::unique_ptr<Address> address = TakeOut(old, entry.id);
    if (address == nullptr) {
      address = TakeOut(retired_, entry.id);
      if (address != nullptr) address->Revive();
    }
    if (address == nullptr)
      address = std::make_unique<Address>(entry.id, options_.exchanges_per_connection);
    address->name = entry.name;
    addresses_.push_back(std::move(address));
  }
  for (auto& address : old) {
    address->retired = true;
    retired_.push_back(std::move(address));
  }
  first_ = 0;
  OnTick(now);
  OpenForQueue(now);
}

bool Upstreams::HasRetired(size_t id) const {
  return std::any_of(retired_.begin(), retired_.end(),
                     [&](const auto& address) { return address->id == id; });
}

void Upstreams::OnChecked(size_t id, bool passed) {
  const auto found = std::find_if(addresses_.begin(), addresses_.end(),
                                  [&](const auto& address) { return address->id == id; });
  if (found == addresses_.end()) return;
  Address& address = **found;
  address.failed_checks = passed ? 0 : address.failed_checks + 1;
  if (passed) {
    address.has_accepted = true;
    counters_.checks_passed.Add();
  } else if (!NeverAcceptedUnlikeOthers(address)) {
    counters_.checks_failed.Add();
  }
  // The result may change which addresses get requests.
  if (!queue_.empty()) wake_();
}

bool Upstreams::IsOut(const Address& address, base::Instant now) const {
  return address.failed_checks >= options_.failed_checks_max || address.health.IsOut(now);
}

bool Upstreams::AllAreOut(base::Instant now) const {
  return std::all_of(addresses_.begin(), addresses_.end(),
                     [&](const auto& address) { return IsOut(*address, now); });
}

bool Upstreams::AvoidsSlow(base::Instant now) const {
  if (slow_ == 0) return false;
  const bool all_out = AllAreOut(now);
  return std::any_of(addresses_.begin(), addresses_.end(), [&](const auto& address) {
    return address->slow == 0 && (all_out || !IsOut(*address, now));
  });
}

bool Upstreams::NeverAcceptedUnlikeOthers(const Address& address) const {
  return !address.has_accepted && address.name != 0 &&
         std::any_of(addresses_.begin(), addresses_.end(), [&](const auto& other) {
           return other->name == address.name && other->has_accepted;
         });
}

// ---- Requests

// Places that only a client without a place may take, so that a newcomer need not wait for the
// requests of the others.
uint64_t Upstreams::KeptOf(const Address& address) const {
  if (address.places(options_.connections_max) < kPlacesToKeepOne) return 0;
  const uint64_t free = address.free_places(options_.connections_max);
  // If many connections drain, all free places are reserved for clients without a place. Otherwise
  // a client whose requests keep the draining connections open could take the last places too.
  if (2 * address.drained(options_.connections_max) > options_.connections_max) return free;
  return std::min<uint64_t>(1, free);
}

bool Upstreams::IsLastKept(const Address& address) const {
  const uint64_t kept = KeptOf(address);
  return kept > 0 && kept == address.free_places(options_.connections_max);
}

Upstreams::FreePlaces Upstreams::CountFree(base::Instant now) const {
  const bool all_out = AllAreOut(now);
  uint64_t count = 0;
  uint64_t kept = 0;
  for (const auto& address : addresses_) {
    if (!all_out && IsOut(*address, now)) continue;
    count += address->free_places(options_.connections_max);
    kept += KeptOf(*address);
  }
  // At least one of all free places is reserved, even if no single address is large enough to
  // reserve one.
  return {.count = count, .kept = std::max<uint64_t>(1, kept)};
}

bool Upstreams::IsWithinPart(const Waiter& waiter, FreePlaces free, uint64_t promised) const {
  return !divides_ || !WaiterQueue::IsLimited(waiter) ||
         MayTakeOne(queue_.HeldBy(waiter) + promised, free.count - std::min(free.count, promised),
                    free.kept);
}

Places::Taken Upstreams::Take(Waiter& waiter, base::Instant now) {
  if (closed_) return {.refused = NoPlace::kClosed};
  const FreePlaces free = CountFree(now);
  const bool within_part = IsWithinPart(waiter, free);
  bool may_connect = false;
  // A request does not overtake earlier requests of its client, nor a request that may have the
  // next place.
  if (within_part && !MayServe(free) && queue_.WaitingOf(waiter) == 0) {
    Address* const address = Choose(Need::kPlaceOrConnection, waiter, now);
    may_connect = address != nullptr;
    Link* const link = address == nullptr ? nullptr : FreeLink(*address);
    if (link != nullptr) return {.place = &Occupy(*link, waiter)};
  }
  if (queue_ended_) return {.refused = NoPlace::kClosed};
  const size_t room = options_.queue_max - std::min(options_.queue_max, queue_.size());
  if (room == 0) {
    counters_.refusals_full.Add();
    return {.refused = NoPlace::kQueueFull};
  }
  if (WaiterQueue::IsLimited(waiter) && !MayTakeOne(queue_.WaitingOf(waiter), room)) {
    counters_.refusals_client.Add();
    return {.refused = NoPlace::kQueueFull};
  }
  // Only for the counters: whether the request waits because of its client's part or because no
  // place is free. The client's earlier requests in the queue count, because they get their places
  // first.
  const bool waits_for_client = !IsWithinPart(waiter, free, queue_.WaitingOf(waiter));
  waiter.failed_connects_ = 0;
  queue_.Append(waiter);
  counters_.queued.Add();
  OpenForQueue(now);
  may_connect = may_connect || connecting_ * options_.exchanges_per_connection >= queue_.size();
  if (waits_for_client && free.count > 0) {
    counters_.waits_for_client.Add();
  } else if (!may_connect) {
    counters_.waits_for_place.Add();
  }
  return {};
}

void Upstreams::Forget(Waiter& waiter) {
  const size_t before = queue_.size();
  queue_.Remove(waiter);
  counters_.queued.Subtract(before - queue_.size());
}

void Upstreams::OnWoken(base::Instant now) {
  // The free places are counted again for each request, because OnPlace may have changed anything.
  while (MayServe(CountFree(now))) {
    Address* const address = Choose(Need::kPlace, queue_.front(), now);
    if (address == nullptr) break;
    Link& link = *FreeLink(*address);
    counters_.queued.Subtract();
    Waiter& waiter = queue_.TakeFirst();
    waiter.OnPlace(Occupy(link, waiter), now);
  }
  OpenForQueue(now);
  dead_.clear();
}

Upstreams::Address* Upstreams::Choose(Need need, const Waiter& waiter, base::Instant now) {
  const bool all_out = AllAreOut(now);
  const bool avoids_slow = AvoidsSlow(now);
  // Among addresses that can take the request, the one with the least load wins. The search begins
  // behind the address that was used last, so equally loaded ones take turns.
  const bool may_have_kept =
      !divides_ || !WaiterQueue::IsLimited(waiter) || queue_.HeldBy(waiter) == 0;
  Address* best = nullptr;
  for (size_t i = 0; i < addresses_.size(); ++i) {
    Address& address = *addresses_[(first_ + i) % addresses_.size()];
    if (!all_out && IsOut(address, now)) continue;
    if (best != nullptr && best->load() <= address.load()) continue;
    if (!may_have_kept && IsLastKept(address)) continue;
    const bool may_connect =
        need == Need::kPlaceOrConnection && !(avoids_slow && address.slow > 0) &&
        address.bounded_links(options_.connections_max) < options_.connections_max;
    if (may_connect || FreeLink(address) != nullptr) best = &address;
  }
  return best;
}

Upstreams::Link* Upstreams::FreeLink(Address& address) {
  // `free` may contain connections that have no place any more; they are dropped when they are
  // found.
  while (!address.free.empty()) {
    Link& link = *address.free.back();
    if (link.has_place()) return &link;
    link.is_free = false;
    address.free.pop_back();
  }
  return nullptr;
}

Place& Upstreams::Occupy(Link& link, Waiter& waiter) {
  NoteUsed(link.address);
  queue_.Hold(waiter);
  NotePlaces(link);
  ++link.used;
  ++link.outstanding;
  ++link.address.outstanding;
  counters_.outstanding.Add();
  return link;
}

// Until the upstream has stated its limit, a new connection only assumes a number of places. So it
// raises the known number only after an exchange has succeeded on it.
void Upstreams::NotePlaces(Link& link) {
  const uint64_t places = link.outstanding + link.connection->session().free_places();
  uint64_t& known = link.address.connection_places;
  known = link.has_answered ? places : std::min(known, places);
}

// The next request considers the address behind this one first.
void Upstreams::NoteUsed(const Address& address) {
  const auto at = std::find_if(addresses_.begin(), addresses_.end(),
                               [&](const auto& owned) { return owned.get() == &address; });
  first_ = static_cast<size_t>(at - addresses_.begin() + 1) % addresses_.size();
}

void Upstreams::OnLeft(Link& link, Waiter& waiter, Ended ended, base::Instant now) {
  HEADGATE_CHECK(link.outstanding > 0);
  queue_.Release(waiter);
  if (ended == Ended::kWell) link.has_answered = true;
  --link.outstanding;
  --link.address.outstanding;
  if (link.drains) --link.address.outstanding_draining;
  counters_.outstanding.Subtract();
  OnHealth(link.address, ended, now);
  NoteFree(link, now);
}

void Upstreams::OnHealth(Address& address, Ended ended, base::Instant now) {
  // A cancelled exchange, or one that was not begun, says nothing about the address.
  if (ended == Ended::kWell) return address.health.OnSuccess();
  if (ended == Ended::kFailed) OnFailure(address, AsideBecause::kBroken, now);
  if (ended == Ended::kTooSlow) OnFailure(address, AsideBecause::kTooSlow, now);
}

void Upstreams::OnFailure(Address& address, AsideBecause why, base::Instant now) {
  const bool was_out = address.health.IsOut(now);
  address.failed = why;
  address.health.OnFailure(options_.health, now);
  if (!was_out && address.health.IsOut(now)) counters_.out.Add();
}

void Upstreams::DescribeAddresses(std::vector<AddressState>& states) const {
  states.clear();
  for (const auto& address : addresses_) {
    const bool fails_checks = address->failed_checks >= options_.failed_checks_max;
    states.push_back({.id = address->id,
                      .in_progress = address->outstanding,
                      .aside = address->health.is_suspect() ? address->failed
                               : !fails_checks              ? AsideBecause::kNot
                               : NeverAcceptedUnlikeOthers(*address)
                                   ? AsideBecause::kNeverAccepted
                                   : AsideBecause::kChecksFailed});
  }
}

void Upstreams::OnConnectFailure(Address& address, base::Instant now) {
  if (!NeverAcceptedUnlikeOthers(address))
    return OnFailure(address, AsideBecause::kNoConnection, now);
  // If other addresses of the name accept connections, this one is probably not served at all: one
  // failure is enough.
  HealthOptions at_once = options_.health;
  at_once.failures_max = 1;
  address.failed = AsideBecause::kNeverAccepted;
  address.health.OnFailure(at_once, now);
}

void Upstreams::EndQueue(base::Instant now) {
  queue_ended_ = true;
  while (!queue_.empty()) {
    counters_.queued.Subtract();
    queue_.TakeFirst().OnNoPlace(NoPlace::kClosed, "the proxy shuts down", now);
  }
}

void Upstreams::SetDivides(bool divides) {
  divides_ = divides;
  if (!queue_.empty()) wake_();
}

void Upstreams::Close(base::Instant now) {
  closed_ = true;
  EndQueue(now);
  for (auto* const all : {&addresses_, &retired_}) {
    for (const auto& address : *all) {
      while (!address->links.empty()) EndLink(*address->links.back(), now);
    }
  }
  dead_.clear();
}

}  // namespace headgate::proxy
