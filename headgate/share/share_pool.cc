#include "headgate/share/share_pool.h"

#include <algorithm>
#include <utility>

namespace headgate::share {
namespace {

using algorithm::Cost;
using base::Duration;
using base::Instant;

// The retry_after until the latency of the upstream is known.
constexpr Duration kRetryInFlight = std::chrono::seconds(1);

// Above the limit, up to this many times the usual limit may be let in for clients that have less
// than others.
constexpr uint64_t kAboveLimit = 2;

}  // namespace

absl::StatusOr<std::unique_ptr<SharePool>> SharePool::Make(const ShareOptions& options) {
  HEADGATE_RETURN_IF_ERROR(options.Validate());
  algorithm::FairShareOptions pool_options = options.pool;
  std::optional<capacity::CapacityController> controller;
  if (options.find_capacity) {
    HEADGATE_ASSIGN_OR_RETURN(controller,
                              capacity::CapacityController::Make(*options.find_capacity));
    // No client is refused because of its share before a capacity is found.
    pool_options.capacity = algorithm::kFairCapacityMax;
    // The requests in flight are limited.
    pool_options.is_paced = false;
  }
  HEADGATE_ASSIGN_OR_RETURN(algorithm::FairSharePool pool,
                            algorithm::FairSharePool::Make(pool_options));
  return std::unique_ptr<SharePool>(new SharePool(options, std::move(pool), std::move(controller)));
}

SharePool::SharePool(const ShareOptions& options, algorithm::FairSharePool pool,
                     std::optional<capacity::CapacityController> controller)
    : options_(options),
      has_controller_(controller.has_value()),
      names_(options_),
      pool_(std::move(pool)),
      controller_(std::move(controller)),
      in_flight_(options_.secret),
      is_capacity_known_(!has_controller_),
      mode_(options.mode) {}

PoolAnswer SharePool::Admit(std::string_view client_id, Cost cost, Instant now) {
  ClientNames::Buffer buffer;
  const std::string_view client = names_.NameOf(client_id, buffer);
  const uint32_t weight = names_.WeightOf(client);

  const std::lock_guard lock(mutex_);
  DropLong(now);
  FollowCapacity(now);
  PoolAnswer verdict = Judge(client, cost, weight, now);
  verdict.admitted = verdict.reason == Reason::kWithinShare;
  if (cost == 0) return verdict;
  if (!verdict.admitted && MayExceed(verdict.reason, now)) {
    pool_.CountSentAnyway(client, cost);
    verdict.reason = Reason::kAboveShare;
    verdict.admitted = true;
  }
  if (!verdict.admitted) CountRefusal(verdict.reason, now);
  if (!verdict.admitted && mode_ == Mode::kPassthrough) {
    verdict.admitted = verdict.counted_only = true;
    ++counted_only_;
  }
  if (verdict.admitted) {
    verdict.retry_after = Duration(0);
    const bool takes = verdict.reason == Reason::kWithinShare;
    verdict.number = Enter({.client = client,
                            .weight = weight,
                            .taken = takes ? cost : 0,
                            .cycle = pool_.cycle().number,
                            .is_above = verdict.is_above_limit},
                           now);
  }
  return verdict;
}

PoolAnswer SharePool::Judge(std::string_view client, Cost cost, uint32_t weight, Instant now) {
  if (client.empty()) return {.reason = Reason::kNoClient, .retry_after = algorithm::kNever};
  const Room room = RoomFor(client, cost, weight, now);
  const bool has_room = room != Room::kNone;
  const uint64_t refused_clients = pool_.refused_clients();
  const algorithm::Decision decision =
      pool_.Decide({.client = client, .cost = cost, .weight = weight, .takes = has_room}, now);
  PoolAnswer verdict{.is_above_limit = room == Room::kAbove,
                     .has_limit = is_capacity_known_,
                     .limit = decision.limit,
                     .remaining = decision.remaining,
                     .retry_after = decision.retry_after,
                     .reset_after = decision.reset_after};
  if (pool_.refused_clients() != refused_clients) {
    verdict.reason = Reason::kTooManyClients;
    verdict.has_limit = false;
  } else if (decision.never_fits()) {
    verdict.reason = Reason::kNeverFits;
  } else if (!has_room) {
    verdict.reason = Reason::kInFlight;
    if (decision.allowed) verdict.retry_after = controller_->LatencyBase().value_or(kRetryInFlight);
  } else if (!decision.allowed) {
    verdict.reason = Reason::kShareUsed;
  }
  return verdict;
}

// Requests that are on pace come no faster than the capacity, so after a short time only the
// requests of the storm find no room. But if the upstream can do less than the pool believes,
// requests on pace come too fast as well. Requests of clients that are behind never do, so there is
// room for them while the others wait for a limit that has fallen by half.
SharePool::Room SharePool::RoomFor(std::string_view client, Cost cost, uint32_t weight,
                                   Instant now) {
  if (!controller_ || controller_->HasRoom() || controller_->MakeRoom(now)) return Room::kBelow;
  cost = std::max<Cost>(cost, 1);
  const uint64_t in_flight = controller_->in_flight();
  const uint64_t limit = controller_->limit();
  if (in_flight <= limit + limit / 2 && is_capacity_known_ && pool_.IsOnPace(client, cost, now))
    return Room::kBelow;
  const uint32_t usual = controller_->limit_usual();
  if (in_flight_.above() >= kAboveLimit * usual) return Room::kNone;
  const InFlight::Own own = in_flight_.OwnOf(client, weight, controller_->limit(), usual);
  const bool may_exceed =
      own.has_room || (own.requests * 2 <= usual && pool_.IsBehind(client, cost));
  return may_exceed ? Room::kAbove : Room::kNone;
}

// In Mode::kPassthrough everything passes, so nothing needs to be tried.
bool SharePool::MayExceed(Reason reason, Instant now) {
  return controller_ && mode_ == Mode::kEnforce && reason == Reason::kShareUsed &&
         controller_->MayExceedPool(now);
}

void SharePool::CountRefusal(Reason reason, Instant now) {
  ++CountOf(refusals_, reason);
  if (!controller_ || mode_ == Mode::kPassthrough) return;
  if (reason == Reason::kInFlight) controller_->OnRefused(capacity::RefusedBy::kLimit, now);
  if (reason == Reason::kShareUsed) controller_->OnRefused(capacity::RefusedBy::kPool, now);
}

void SharePool::FollowCapacity(Instant now) {
  if (!controller_) return;
  const std::optional<uint64_t> found = controller_->PerCycle(options_.pool.cycle);
  if (!found) return;
  if (std::exchange(is_capacity_known_, true)) {
    pool_.SetCapacity(*found, now);
  } else {
    pool_.BeginAnew(*found, now);
  }
}

uint64_t SharePool::Enter(const InFlight::Request& request, Instant now) {
  if (controller_) controller_->OnSent(now);
  seen_ = std::max(seen_, now);
  return in_flight_.Enter(request, seen_);
}

void SharePool::OnEnd(const End& end, Instant now) {
  const std::lock_guard lock(mutex_);
  DropLong(now);
  if (controller_ && end.was_sent && end.outcome == capacity::RequestEnd::kLeft &&
      abandoned_.size() < kAbandonedMax) {
    const Instant until = base::Clamp(end.sent_at + controller_->WorkTime());
    if (now < until) return abandoned_.push_back({.number = end.number, .until = until});
  }
  const InFlight::Left left = in_flight_.Leave(end.number);
  if (!end.was_sent) pool_.ReturnPart(left.request.client, left.request.taken, left.request.cycle);
  if (!controller_) return;
  if (left.counted) return controller_->OnEnd(end.outcome, end.sent_at, now);
  if (end.outcome == capacity::RequestEnd::kAnswered) controller_->OnLateAnswer(end.sent_at, now);
}

// Requests that wait for something else than the upstream's workers no longer count.
void SharePool::DropLong(Instant now) {
  if (!controller_) return;
  EndAbandoned(now);
  while (in_flight_.DropFrom(now - controller_->Patience()))
    controller_->OnEnd(capacity::RequestEnd::kLeft, now, now);
}

// Otherwise a client that hangs up again and again could have any number of requests in work at
// once.
void SharePool::EndAbandoned(Instant now) {
  for (; !abandoned_.empty() && abandoned_.front().until <= now; abandoned_.pop_front()) {
    if (in_flight_.Leave(abandoned_.front().number).counted)
      controller_->OnEnd(capacity::RequestEnd::kLeft, now, now);
  }
}

uint64_t SharePool::LetThrough(Instant now) {
  const std::lock_guard lock(mutex_);
  return Enter({}, now);
}

void SharePool::SetMode(Mode mode) {
  const std::lock_guard lock(mutex_);
  mode_ = mode;
}

Mode SharePool::mode() const {
  const std::lock_guard lock(mutex_);
  return mode_;
}

void SharePool::TakeSnapshot(Instant now, PoolSnapshot& snapshot) {
  const std::lock_guard lock(mutex_);
  DropLong(now);
  FollowCapacity(now);
  pool_.Advance(now);
  snapshot.mode = mode_;
  snapshot.capacity = is_capacity_known_ ? std::optional(pool_.capacity()) : std::nullopt;
  snapshot.cycle = pool_.cycle();
  snapshot.counts = pool_.counts();
  Add(snapshot.counts, earlier_);
  snapshot.refusals = refusals_;
  snapshot.counted_only = counted_only_;
  snapshot.clients_left = pool_.clients_left();
  snapshot.clients_replaced = pool_.clients_replaced();
  snapshot.upstream.reset();
  if (controller_) {
    snapshot.upstream = {.in_flight = controller_->in_flight(),
                         .long_requests = in_flight_.size() - in_flight_.counted(),
                         .limit = controller_->limit(),
                         .per_1000_s = controller_->PerCycle(std::chrono::seconds(1000)),
                         .latency_base = controller_->LatencyBase()};
  }
  snapshot.clients.resize(pool_.client_count());
  for (size_t i = 0; i < snapshot.clients.size(); ++i) {
    const algorithm::ClientView view = pool_.client(i);
    snapshot.clients[i].name.assign(view.name);
    snapshot.clients[i].figures = view.figures;
  }
  snapshot.others_count = 0;
  snapshot.others = {};
}

}  // namespace headgate::share
