#include "tests/simulation/node.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "headgate/limiter/local_shares.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using limiter::HeldLease;
using limiter::HeldLeases;
using limiter::Mode;
using limiter::Settled;
using store::Operation;
using Outcome = Evidence::Call;

namespace {

// Whoever asks for two of it is denied for ever, and that is all it is for.
constexpr algorithm::LimitSpec kGate{
    .algorithm = algorithm::Algorithm::kTokenBucket, .requests = 1, .period = std::chrono::hours(1), .burst = 1};
constexpr uint64_t kGateCost = 2;

limiter::FleetOptions OptionsOf(const Plan& plan, uint64_t id, limiter::AskPace* pace) {
  return {.on_store_failure = plan.on_store_failure,
          // Its timer may fire late, by far: the network's is the plan's.
          .timeout = std::min(plan.timeout, plan.ttl / 16),
          .leases = limiter::LeaseBookOptions{.node = id, .pace = pace, .keys_max = 8, .ttl = plan.ttl}};
}

// What a node may let through by itself. Requests are decided as of when they came, but one that waited for the store
// in vain only after a timeout: they may be told apart by so much less.
algorithm::Limit ShareOf(const algorithm::Limit& whole, const Plan& plan) {
  algorithm::LimitSpec share = limiter::PartOf(whole.spec(), {1, plan.nodes});
  if (IsMeter(whole)) {
    *share.burst +=
        (share.requests * static_cast<uint64_t>(plan.timeout.count())) / static_cast<uint64_t>(share.period.count()) +
        1;
  }
  return *algorithm::Limit::Make(share);
}

std::string Text(const Settled& settled) {
  return fmt::format("{} {}, {} left", Name(settled.mode), settled.decision.allowed ? "allowed" : "denied",
                     settled.decision.remaining);
}

}  // namespace

Node::Node(NodeHost& host, const Plan& plan, std::optional<Mutant> mutant, Coverage& coverage, const NodeStart& start,
           const std::vector<store::LimitHandle>& limits)
    : host_(host),
      plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      start_(start),
      now_(start.boot),
      local_({.max_buckets = 64}, [this](const store::TakeRequest& request, const algorithm::Decision& decision,
                                         base::Instant at) { OnLocal(request, decision, at); }),
      pace_(plan.one_instance ? std::make_unique<limiter::AskPace>() : nullptr),
      fleet_(*this, local_, OptionsOf(plan, start.id, pace_.get())) {
  const auto add = [this](const algorithm::Limit& limit) {
    keys_.push_back({.limit = *local_.limits().Intern(limit),
                     .ledger = Ledger(plan_, coverage_, [this](const std::string& what) { Wrong(what); }),
                     .share = Bound(ShareOf(limit, plan_), plan_.calendar_edge),
                     .share_at = plan_.start});
  };
  for (const store::LimitHandle& limit : limits) add(limit->limit);
  add(*algorithm::Limit::Make(kGate));
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
    const HeldLeases* held = fleet_.leases()->Held(HashOf(i));
    if (held != nullptr && !held->empty()) return true;
  }
  return false;
}

uint64_t Node::Unspent(size_t key, uint64_t number) const {
  const auto& accounts = keys_[key].ledger.accounts();
  const auto account = accounts.find(number);
  return account != accounts.end() ? account->second.granted - account->second.spent : 0;
}

uint64_t Node::held(size_t key) const {
  const HeldLeases* held = fleet_.leases()->Held(HashOf(key));
  return held != nullptr ? held->left() : 0;
}

std::optional<BootTime> Node::DeadlineOf(size_t key, uint64_t number) const {
  const HeldLeases* held = fleet_.leases()->Held(HashOf(key));
  if (held == nullptr) return std::nullopt;
  for (const HeldLease& lease : *held) {
    if (lease.number == number && !lease.closed) return lease.deadline;
  }
  return std::nullopt;
}

void Node::OnConnected(BootTime now) {
  if (now >= learning_until_) learning_until_ = now + plan_.ttl;
  connected_ = true;
}

void Node::OnLimit(size_t index, const store::LimitHandle& limit) {
  Key& key = keys_[index];
  key.limit = *local_.limits().Intern(limit->limit);
  key.share.Widen(ShareOf(limit->limit, plan_), key.share_at - plan_.start);
}

// ---- Requests

void Node::Begin(Request request, BootTime now) {
  now_ = now;
  Key& key = keys_[request.key];
  const bool takes = request.operation == Operation::kTake;
  if (takes && (key.denied_for_ever || SpendPot(request.key, request.cost))) return;
  if (plan_.sharp && takes) {
    for (const auto& [number, account] : key.ledger.accounts()) {
      if (account.deadline == now && account.granted > 0) coverage_.Mark("a request came at the very deadline");
    }
  }
  const HeldLeases* leases = fleet_.leases()->Held(HashOf(request.key));
  const bool held = leases != nullptr && !leases->empty();
  const uint64_t lost = fleet_.leases()->counters().expired_unspent;

  const uint64_t id = ++last_request_;
  request.at = Wall();
  request.pending = std::make_unique<limiter::Pending>([this, id] { ready_.push_back(id); });
  turn_ = {.request = &request, .id = id, .first = true};
  std::array<Settled, 2> settled;
  const bool decided = Take(request, settled);
  const bool asked_lease = turn_.asked_lease;
  Account(request.key);
  turn_ = {};

  if (fleet_.leases()->counters().expired_unspent > lost) {
    coverage_.Mark("a lease expired on its node with something left");
  }
  if (decided) {
    if (asked_lease && settled[0].mode == Mode::kLeased) {
      if (!settled[0].decision.allowed) coverage_.Mark("an exhausted bucket was asked again");
      if (settled[0].decision.allowed && held) coverage_.Mark("a lease was renewed before it was used up");
    }
    Tell(request, settled);
  } else {
    // A group goes on to its gate once its first member is decided.
    request.evidence.waited = request.gate_evidence.decision == Outcome::kNone;
    requests_.emplace(id, std::move(request));
  }
  Wake();
}

// As RESP sessions do: asked again when it is ready, the same request finds its answers.
bool Node::Take(Request& request, std::span<Settled> settled) {
  const size_t gate = keys_.size() - 1;
  const std::array<store::TakeRequest, 2> takes{
      store::TakeRequest{.key = HashOf(request.key),
                         .limit = keys_[request.key].limit.get(),
                         .cost = request.cost,
                         .operation = request.operation},
      store::TakeRequest{.key = HashOf(gate), .limit = keys_[gate].limit.get(), .cost = kGateCost, .joined = true}};
  const std::array<limiter::SharedTerms, 2> terms{fleet_.default_terms(), fleet_.default_terms()};
  const size_t count = request.in_group ? 2 : 1;
  const auto name = [&](size_t i, std::string& out) { out += NameOf(i == 0 ? request.key : gate); };
  return fleet_.Take(std::span(takes).first(count), std::span(terms).first(count), name, settled.first(count),
                     *request.pending, request.at);
}

// What the book has spent or was given back since it was last looked at.
void Node::Compare(size_t key) {
  keys_[key].unaccounted += keys_[key].ledger.Compare(fleet_.leases()->Held(HashOf(key)), now_);
}

// Whose it was that the book has spent in this turn.
void Node::Account(size_t index) {
  Compare(index);
  const int64_t delta = std::exchange(keys_[index].unaccounted, 0);
  Request* request = turn_.request;
  if (request != nullptr) {
    request->evidence.spent += delta;
  } else if (delta != 0) {
    Wrong(fmt::format("{} of k{} were spent for nobody", delta, index));
  }
  // What is let through for one alone counts when it is told so.
  if (delta > 0 && (request == nullptr || request->in_group)) host_.Admit(*this, index, static_cast<uint64_t>(delta));
  if (delta >= 0) return;
  const auto given = static_cast<uint64_t>(-delta);
  coverage_.Mark("a request was taken back into its lease");
  if (host_.tracing()) host_.Say(*this, fmt::format("k{}: {} given back", index, given));
  host_.TakeBack(*this, index, given);
  if (Is(Mutant::kGivenBackAndRefunded)) RefundOnceMore(index, given);
}

void Node::EndTurn(size_t key) {
  Request* request = turn_.request;
  Account(request != nullptr ? request->key : key);
  if (turn_.last_take != 0) {
    const bool goes_on = ready_.empty() && request->gate_evidence.decision == Outcome::kNone;
    if (goes_on) {
      // The lease that it waited for came too late, so it is decided by the store.
      calls_.at(turn_.last_take).own = true;
      request->evidence.decision = Outcome::kOpen;
    } else {
      coverage_.Mark("what was let through locally was taken from the shared bucket");
    }
  }
  turn_ = {};
  for (const uint64_t id : std::exchange(ready_, {})) {
    const auto found = requests_.find(id);
    std::array<Settled, 2> settled;
    if (found == requests_.end()) {
      Wrong("who was told already can ask again");
    } else if (!Take(found->second, settled)) {
      Wrong("who can ask again has to wait");
    } else {
      TellWaiting(id, settled);
    }
  }
  Wake();
}

void Node::TellWaiting(uint64_t id, std::span<Settled> settled) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return Wrong("a request was decided twice");
  const Request request = std::move(found->second);
  requests_.erase(found);
  Tell(request, settled);
}

void Node::Tell(const Request& request, std::span<Settled> all) {
  Key& key = keys_[request.key];
  Settled& settled = all[0];
  if (host_.tracing()) {
    host_.Say(*this, fmt::format("k{} ×{}{}: {}", request.key, request.cost, request.in_group ? " in a group" : "",
                                 Text(settled)));
  }
  if (IsDegraded(settled.mode) && Is(Mutant::kDegradedCalledLeased)) settled.mode = Mode::kLeased;
  CheckHonest(request, all);
  if (request.operation != Operation::kTake || request.in_group) return;
  const bool exact = settled.mode == Mode::kExact && request.evidence.decision != Outcome::kNone;
  const algorithm::Decision& decision = settled.decision;
  if (settled.mode == Mode::kExact && !exact) coverage_.Mark("a request waited for its lease");
  if (settled.mode == Mode::kLeased && !decision.allowed) coverage_.Mark("a request was denied from memory");
  if (exact && !decision.allowed && Is(Mutant::kDenialNeverEnds)) key.denied_for_ever = true;
  if (settled.mode == Mode::kClosed) coverage_.Mark("a request was refused since the store could not be asked");
  if (!decision.allowed) return;
  if (settled.mode == Mode::kLocal) return coverage_.Mark("a request was let through locally");
  if (!exact) {
    ++key.leased;
    host_.Admit(*this, request.key, request.cost);
  }
  host_.Allowed(*this, request.key, request.cost);
}

void Node::CheckHonest(const Request& request, std::span<const Settled> settled) {
  const auto check = [&](const Settled& what, size_t key, uint64_t cost, const Evidence& evidence) {
    const Decided decided{
        .settled = what, .cost = cost, .in_group = request.in_group, .on_failure = plan_.on_store_failure};
    if (const std::string wrong = Dishonesty(decided, evidence); !wrong.empty()) {
      Wrong(fmt::format("a decision of k{}, said to be {}, {}", key, Name(what.mode), wrong));
    }
  };
  check(settled[0], request.key, request.cost, request.evidence);
  if (!request.in_group) return;
  check(settled[1], keys_.size() - 1, kGateCost, request.gate_evidence);
  if (settled[1].decision.allowed) Wrong("the gate let something through");
}

// While the store cannot be asked each node is held to its share of the limit.
void Node::OnLocal(const store::TakeRequest& request, const algorithm::Decision& decision, base::Instant at) {
  size_t index = 0;
  while (HashOf(index) != request.key) ++index;
  Key& key = keys_[index];
  key.share_at = std::max(key.share_at, at);
  const Duration since = key.share_at - plan_.start;
  if (request.operation == Operation::kRefund) return key.share.Refund(request.cost, since, key.share_at);
  if (turn_.request == nullptr) return Wrong("something was decided locally for nobody");
  Evidence& evidence = EvidenceOf(*turn_.request, index);
  evidence.here = Outcome::kAnswered;
  evidence.allowed_here = decision.allowed;
  if (!decision.allowed || request.operation != Operation::kTake) return;
  if (key.limit->limit.spec().align == algorithm::Align::kFirstHit) {
    key.share.OnWindow(key.share_at + decision.reset_after, key.share_at);
  }
  if (!key.share.Admit(request.cost, since, key.share_at)) {
    host_.Fail(
        fmt::format("node {} let {} of k{} through locally: beyond its share", this->index(), request.cost, index));
  }
}

// After a pause those that came before it are decided along with those that come now: each as of its own time.
void Node::AllowLate(size_t index, Duration late) {
  Key& key = keys_[index];
  if (late < std::chrono::milliseconds(1) || now_ < key.late_until) return;
  key.late_until = now_ + plan_.timeout;
  const Duration since = key.share_at - plan_.start;
  key.share.AllowCapacity(since, since + plan_.timeout);
}

void Node::OnWake(BootTime now) {
  now_ = now;
  wake_at_ = BootTime{0};
  fleet_.OnTime();
  for (size_t key = 0; key < keys_.size(); ++key) Account(key);
  Wake();
}

void Node::Wake() {
  const BootTime next = fleet_.next_wake();
  if (next.ns == INT64_MAX || wake_at_ == next) return;
  wake_at_ = next;
  host_.At(*this, NodeHost::Timer::kWake, 0, next);
}

}  // namespace headgate::simulation
