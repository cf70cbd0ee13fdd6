#include "tests/simulation/node.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using limiter::Mode;
using limiter::Settled;
using limiter::lease::HeldLease;
using limiter::lease::HeldLeases;
using store::Operation;
using CallOutcome = Evidence::Call;

namespace {

constexpr uint64_t kGateCost = 2;

limiter::shared::SharedDeciderOptions OptionsOf(const Plan& plan, uint32_t index,
                                                Instance& instance) {
  return {.on_store_failure = rule::OnStoreFailure::kDeny,
          .timeout = plan.timer(),
          .leases = &instance.leases(),
          .rests = &instance.rests(),
          .loop = index % plan.loops,
          .loops = plan.loops};
}

store::BreakerOptions BreakerOf(const Plan& plan) { return {.open_max = plan.breaker_open_max}; }

std::string Text(const Settled& settled) {
  return fmt::format("{} {}, {} left", Name(settled.mode),
                     settled.decision.allowed ? "allowed" : "denied", settled.decision.remaining);
}

}  // namespace

Node::Node(NodeHost& host, const Plan& plan, std::optional<Mutant> mutant, Coverage& coverage,
           const NodeStart& start, Instance& instance)
    : host_(host),
      plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      start_(start),
      now_(start.boot),
      instance_(instance),
      local_(instance.memory(),
             [this](const store::TakeRequest& request, const algorithm::Decision& decision,
                    base::Instant at) { OnLocal(request, decision, at); }),
      breaker_(BreakerOf(plan), instance.id() + start.index),
      fleet_(*this, local_, OptionsOf(plan, start.index, instance)),
      answered_at_(start.boot),
      shard_(start.shard) {
  histories_.OnSeen(shard_, start.server, start.boot);
  for (size_t key = 0; key < instance.key_count(); ++key) {
    keys_.push_back({.limit = instance.limit(key)});
  }
  instance.AddLoop([this] { Wake(); });
}

std::string Node::NameOf(size_t key) { return fmt::format("k{}", key); }

size_t Node::KeyOf(std::string_view name) const {
  for (size_t key = 0; key < keys_.size(); ++key) {
    if (name == NameOf(key)) return key;
  }
  host_.Fail(fmt::format("the store was asked for {}", name));
  return 0;
}

bool Node::holds_leases() const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    const HeldLeases* held = instance_.leases().Held(HashOf(i));
    if (held != nullptr && !held->empty()) return true;
  }
  return false;
}

uint64_t Node::Unspent(size_t key, uint64_t number) const {
  const auto& accounts = instance_.ledger(key).accounts();
  const auto account = accounts.find(number);
  return account != accounts.end() ? account->second.granted - account->second.spent : 0;
}

uint64_t Node::Spent(size_t key, uint64_t number) const {
  const auto& accounts = instance_.ledger(key).accounts();
  const auto account = accounts.find(number);
  return account != accounts.end() ? account->second.spent : 0;
}

uint64_t Node::held(size_t key) const {
  const HeldLeases* held = instance_.leases().Held(HashOf(key));
  return held != nullptr ? held->left() : 0;
}

std::optional<BootTime> Node::DeadlineOf(size_t key, uint64_t number) const {
  const HeldLeases* held = instance_.leases().Held(HashOf(key));
  if (held == nullptr) return std::nullopt;
  for (const HeldLease& lease : *held) {
    if (lease.number == number && !lease.closed) return lease.deadline;
  }
  return std::nullopt;
}

void Node::OnConnected(uint32_t shard, const store::redis::ServerIdentity& server, BootTime now) {
  shard_ = shard;
  histories_.OnSeen(shard, server, now);
  connected_ = true;
}

void Node::OnServer(uint32_t shard, const store::redis::ServerIdentity& server, BootTime now) {
  if (!connected_) return;
  shard_ = shard;
  if (const auto change = histories_.OnSeen(shard, server, now);
      change != store::redis::HistoryChange::kNone) {
    Wrong(fmt::format("a history that continues was taken for one that was {}", Name(change)));
  }
}

void Node::OnLimit(size_t key, const store::LimitHandle& limit) {
  instance_.OnLimit(key, limit->limit);
  keys_[key].limit = instance_.limit(key);
}

void Node::OnShutdown(BootTime now) {
  now_ = now;
  closing_ = true;
  fleet_.ReturnLeases([](uint64_t) {});
  for (size_t key = 0; key < keys_.size(); ++key) Account(key);
  WakeAll();
}

rule::OnStoreFailure Node::PolicyOf(size_t key) const {
  return IsGate(key) ? rule::OnStoreFailure::kDeny : plan_.keys[key].on_store_failure;
}

rule::Sharing Node::SharingOf(size_t key) const {
  return IsGate(key) ? rule::Sharing::kLeased : plan_.keys[key].sharing;
}

Evidence* Node::EvidenceOf(Request& request, size_t key) {
  for (Member& member : request.members) {
    if (member.key == key) return &member.evidence;
  }
  return nullptr;
}

// ---- Requests from clients

void Node::OnGroup(uint64_t cost, BootTime now) {
  Request request{.members = {}, .operation = Operation::kTake};
  for (size_t key = 0; !IsGate(key); ++key) request.members.push_back({.key = key, .cost = cost});
  Begin(std::move(request), now);
}

void Node::OnGatedRequest(size_t key, uint64_t cost, BootTime now) {
  Begin({.members = {{.key = key, .cost = cost}, {.key = keys_.size() - 1, .cost = kGateCost}},
         .operation = Operation::kTake},
        now);
}

void Node::Begin(Request request, BootTime now) {
  now_ = now;
  if (closing_) return;
  const bool takes = request.operation == Operation::kTake;
  const Member first = request.members.front();
  if (takes && (keys_[first.key].denied_for_ever || SpendPot(first.key, first.cost))) return;
  if (plan_.sharp && takes) {
    for (const auto& [number, account] : instance_.ledger(first.key).accounts()) {
      if (account.deadline == now && account.granted > 0)
        coverage_.Mark("a request came at the very deadline");
    }
  }
  const HeldLeases* leases = instance_.leases().Held(HashOf(first.key));
  const bool held = leases != nullptr && !leases->empty();
  const uint64_t lost = instance_.leases().totals().expired_unspent;

  const uint64_t id = ++last_request_;
  request.at = Wall();
  for (Member& member : request.members)
    member.counts_denied = keys_[member.key].limit->limit.spec().count_denied;
  request.pending = std::make_unique<limiter::Pending>([this, id] { ready_.push_back(id); });
  request.pending->TellResumed([this, id] { Resume(id); });
  turn_ = {.request = &request, .id = id, .first = true};
  std::vector<Settled> settled(request.members.size());
  const bool decided = Take(request, settled);
  const bool asked_lease = turn_.asked_lease;
  AccountAll(request);
  turn_ = {};

  if (instance_.leases().totals().expired_unspent > lost) {
    coverage_.Mark("a lease expired on its node with something left");
  }
  if (decided) {
    if (asked_lease && held && settled[0].mode == Mode::kLeased && settled[0].decision.allowed)
      coverage_.Mark("a lease was renewed before it was used up");
    Tell(request, settled);
  } else {
    requests_.emplace(id, std::move(request));
  }
  WakeAll();
}

// Called again when the answers are there.
bool Node::Take(Request& request, std::span<Settled> settled) {
  if (const std::span<const Settled> answers = request.pending->settled(); !answers.empty()) {
    if (request.pending->waiting()) return false;
    std::ranges::copy(answers, settled.begin());
    return true;
  }
  std::vector<limiter::BatchEntry> batch;
  for (const Member& member : request.members) {
    batch.push_back(
        {.request = {.key = HashOf(member.key),
                     .limit = keys_[member.key].limit.get(),
                     .cost = member.cost,
                     .operation = request.operation,
                     .joined = batch.empty() ? store::Joined::kNo : store::Joined::kSameRule},
         .terms = {.on_store_failure = PolicyOf(member.key), .sharing = SharingOf(member.key)}});
  }
  const auto name = [&](size_t i, std::string& out) { out += NameOf(request.members[i].key); };
  const bool decided = fleet_.Decide(batch, name, request.pending.get(), request.at);
  for (size_t i = 0; i < batch.size(); ++i) settled[i] = batch[i].settled;
  return decided;
}

// Adds the requests that the book has spent or got back since the last call.
void Node::Compare(size_t key) {
  keys_[key].unaccounted +=
      instance_.ledger(key).Compare(instance_.leases().Held(HashOf(key)), now_);
}

void Node::AccountAll(const Request& request) {
  for (const Member& member : request.members) Account(member.key);
}

// Attributes the requests that the book has spent in this turn to the request that is decided.
void Node::Account(size_t index) {
  Compare(index);
  const int64_t delta = std::exchange(keys_[index].unaccounted, 0);
  Request* request = turn_.request;
  Evidence* evidence = request != nullptr ? EvidenceOf(*request, index) : nullptr;
  if (evidence != nullptr) {
    evidence->spent += delta;
  } else if (delta != 0) {
    Wrong(fmt::format("{} of k{} were spent for no request", delta, index));
  }
  if (delta > 0 && host_.tracing())
    host_.Say(*this, fmt::format("k{}: {} spent for request {}", index, delta, turn_.id));
  // A request outside a group is counted later, when its client is told the decision.
  if (delta > 0 && (request == nullptr || request->in_group()))
    host_.Admit(*this, index, static_cast<uint64_t>(delta), turn_.id);
  if (delta >= 0) return;
  const auto given = static_cast<uint64_t>(-delta);
  coverage_.Mark("a request was taken back into its lease");
  if (host_.tracing()) host_.Say(*this, fmt::format("k{}: {} given back", index, given));
  host_.TakeBack(*this, index, given, turn_.id);
  if (Is(Mutant::kGivenBackAndRefunded)) RefundOnceMore(index, given);
}

// The decider continues a request that waited for the call of another: from now on it works for
// this one.
void Node::Resume(uint64_t id) {
  if (turn_.request != nullptr) AccountAll(*turn_.request);
  const auto found = requests_.find(id);
  if (found == requests_.end()) return Wrong("a request that was already answered continued");
  turn_ = {.request = &found->second, .id = id};
}

void Node::EndTurn(size_t key) {
  Request* request = turn_.request;
  if (request != nullptr) AccountAll(*request);
  if (request == nullptr || EvidenceOf(*request, key) == nullptr) Account(key);
  turn_ = {};
  for (const uint64_t id : std::exchange(ready_, {})) {
    const auto found = requests_.find(id);
    if (found == requests_.end()) {
      Wrong("a request that was already told became ready again");
      continue;
    }
    std::vector<Settled> settled(found->second.members.size());
    if (!Take(found->second, settled)) {
      Wrong("a request that is ready has to wait again");
    } else {
      TellWaiting(id, settled);
    }
  }
  WakeAll();
}

void Node::TellWaiting(uint64_t id, std::span<Settled> settled) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return Wrong("a request was decided twice");
  const Request request = std::move(found->second);
  requests_.erase(found);
  Tell(request, settled);
}

void Node::Tell(const Request& request, std::span<Settled> all) {
  const Member& first = request.members.front();
  Key& key = keys_[first.key];
  Settled& settled = all[0];
  if (host_.tracing()) {
    for (size_t i = 0; i < all.size(); ++i) {
      host_.Say(*this, fmt::format("k{} ×{}{}: {}", request.members[i].key, request.members[i].cost,
                                   request.in_group() ? " in a group" : "", Text(all[i])));
    }
  }
  if (IsDegraded(settled.mode) && Is(Mutant::kDegradedCalledLeased)) settled.mode = Mode::kLeased;
  CheckHonest(request, all);
  if (request.operation != Operation::kTake) return;
  if (request.in_group()) return TellGroup(request, all);
  host_.Decided(*this, first.key, first.cost, settled);
  const bool exact = settled.mode == Mode::kExact && first.evidence.spent == 0;
  const algorithm::Decision& decision = settled.decision;
  if (settled.mode == Mode::kExact && !exact)
    coverage_.Mark("a lease paid for what the store denied");
  if (first.evidence.awaited != CallOutcome::kNone)
    coverage_.Mark("a request waited for the call of another");
  if (settled.mode == Mode::kLeased && !decision.allowed)
    coverage_.Mark("a request was denied from memory");
  if (exact && !decision.allowed && Is(Mutant::kDenialNeverEnds)) key.denied_for_ever = true;
  if (settled.mode == Mode::kClosed)
    coverage_.Mark("a request was refused since the store could not be asked");
  if (!decision.allowed && !IsDegraded(settled.mode) && first.cost <= decision.limit) {
    host_.Denied(*this, first.key, first.cost, answered_at_);
  }
  if (!decision.allowed) return;
  if (settled.mode == Mode::kLocal) {
    coverage_.Mark("a request was let through locally");
    return host_.AdmitLocally(*this, first.key, first.cost, answered_at_);
  }
  if (settled.mode == Mode::kOpen) return coverage_.Mark("a request was let through uncounted");
  if (!exact) {
    ++key.leased;
    host_.Admit(*this, first.key, first.cost, 0);
  }
  host_.Allowed(*this, first.key, first.cost);
}

// Requests that the members took from leases were counted when they were spent.
void Node::TellGroup(const Request& request, std::span<const Settled> settled) {
  if (std::all_of(settled.begin(), settled.end(),
                  [](const Settled& s) { return s.decision.allowed; })) {
    coverage_.Mark("a group of limits was let through");
    for (size_t i = 0; i < settled.size(); ++i) {
      const Member& member = request.members[i];
      if (settled[i].mode == Mode::kLocal)
        host_.AdmitLocally(*this, member.key, member.cost, answered_at_);
    }
  } else if (!IsGate(request.members.back().key)) {
    coverage_.Mark("a group of limits was denied by one of them");
  }
}

void Node::CheckHonest(const Request& request, std::span<const Settled> settled) {
  // The first member that denied decides whether other members count the request nevertheless. A
  // later denial may be reported in place of the first.
  const auto denier = std::find_if(settled.begin(), settled.end(),
                                   [](const Settled& s) { return !s.decision.allowed; });
  const bool undone = request.in_group() && denier != settled.end();
  const bool counts = undone && request.operation == Operation::kTake;
  for (size_t i = 0; i < settled.size(); ++i) {
    const Member& member = request.members[i];
    const bool counted = counts && member.counts_denied;
    const Decided decided{.settled = settled[i],
                          .cost = member.cost,
                          .in_group = request.in_group(),
                          .takes = request.operation == Operation::kTake,
                          .counted = counted,
                          .undone = undone && !counted,
                          .on_failure = PolicyOf(member.key)};
    if (const std::string wrong = Dishonesty(decided, member.evidence); !wrong.empty()) {
      Wrong(fmt::format("a decision of k{}, reported as {}, {}", member.key, Name(settled[i].mode),
                        wrong));
    }
    if (IsGate(member.key) && settled[i].decision.allowed) Wrong("the gate let something through");
  }
}

// While the store is unreachable, each instance may admit only its share of the limit.
void Node::OnLocal(const store::TakeRequest& request, const algorithm::Decision& decision,
                   base::Instant at) {
  size_t index = 0;
  while (HashOf(index) != request.key) ++index;
  instance_.SeeAt(index, at);
  if (request.operation == Operation::kUndo)
    return instance_.UndoLocally(index, request.cost, request.taken_at);
  Evidence* evidence = turn_.request != nullptr ? EvidenceOf(*turn_.request, index) : nullptr;
  if (evidence == nullptr) return Wrong("a local decision belongs to no request");
  evidence->here = CallOutcome::kAnswered;
  evidence->allowed_here = decision.allowed;
  if (!decision.allowed || request.operation != Operation::kTake || request.cost == 0) return;
  // A take at an earlier time does not admit a request: it only makes the share begin with a part
  // of it used.
  if (at < Wall()) return;
  if (!instance_.AdmitLocally(index, request.cost, decision.reset_after)) {
    host_.Fail(fmt::format("node {} let {} of k{} through locally: beyond its share", this->index(),
                           request.cost, index));
  }
}

void Node::OnWake(BootTime now) {
  now_ = now;
  wake_at_ = BootTime{0};
  fleet_.OnTime();
  for (size_t key = 0; key < keys_.size(); ++key) Account(key);
  WakeAll();
}

void Node::Wake() {
  const BootTime next = fleet_.next_wake();
  if (next.ns == INT64_MAX || wake_at_ == next) return;
  wake_at_ = next;
  host_.At(*this, NodeHost::Timer::kWake, 0, next);
}

}  // namespace headgate::simulation
