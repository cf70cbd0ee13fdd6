#include "tests/strict_simulation/instance.h"

#include <algorithm>
#include <utility>

#include "headgate/store/answer_without_store.h"

namespace headgate::strict_simulation {

using base::BootTime;
using base::Duration;
using limiter::Settled;
using store::SharedAnswer;
using store::SharedRequest;
using store::cas::WaitingRequest;

Instance::Instance(InstanceHost& host, const Plan& plan, std::optional<Mutant> mutant,
                   uint32_t index, uint64_t id, Duration ahead)
    : host_(host),
      plan_(plan),
      mutant_(mutant),
      index_(index),
      wall_(host.clock(), ahead),
      decisions_(wall_),
      local_({.max_buckets = 64}),
      leases_({.node = id, .keys_max = 8}, /*parts=*/4),
      owner_(*this, decisions_, id, {}, [] {}),
      decider_(*this, local_,
               {.on_store_failure = rule::OnStoreFailure::kDeny,
                .timeout = plan.timeout,
                .leases = &leases_,
                .rests = &rests_}) {
  for (const KeyPlan& key : plan.keys)
    keys_.push_back({.limit = *limits().Intern(*algorithm::Limit::Make(key.spec))});
}

// ---- The clients' requests

void Instance::Request(size_t key, store::Operation operation, uint64_t cost) {
  Client client{.key = key,
                .operation = operation,
                .cost = cost,
                .called = host_.now(),
                .at = decisions_.Now()};
  const uint64_t id = ++last_client_;
  client.pending = std::make_unique<limiter::Pending>([this, id] { ready_.push_back(id); });
  Settled settled;
  if (Take(client, settled)) return Settle(client, settled);
  clients_.emplace(id, std::move(client));
}

bool Instance::Take(Client& client, Settled& settled) {
  if (!client.pending->settled().empty()) {
    if (client.pending->waiting()) return false;
    settled = client.pending->settled().front();
    return true;
  }
  const KeyPlan& plan = plan_.keys[client.key];
  limiter::BatchEntry entry{
      .request = {.key = {client.key * 0x9E3779B97F4A7C15u + 1, client.key + 1},
                  .limit = keys_[client.key].limit.get(),
                  .cost = client.cost,
                  .operation = client.operation},
      .terms = {.on_store_failure = mutant_ == Mutant::kFailureAllows ? rule::OnStoreFailure::kAllow
                                                                      : rule::OnStoreFailure::kDeny,
                .sharing = plan.leased ? rule::Sharing::kLeased : rule::Sharing::kStrict}};
  const auto name = [&](size_t, std::string& out) { out += NameOf(client.key); };
  asking_ = &client;
  const bool decided = decider_.Decide({&entry, 1}, name, client.pending.get(), client.at);
  settled = entry.settled;
  asking_ = nullptr;
  return decided;
}

void Instance::Settle(Client& client, const Settled& settled) {
  if (client.operation != store::Operation::kTake) return;
  host_.Tell({.key = client.key,
              .cost = client.cost,
              .called = client.called,
              .told = host_.now(),
              .settled = settled,
              .operations = std::move(client.operations)});
}

void Instance::OnTime() {
  if (owner_.next_wake() <= Now()) owner_.OnTime();
  if (decider_.next_wake() <= Now()) decider_.OnTime();
}

BootTime Instance::EndTurn() {
  while (std::exchange(asked_, false) || !ready_.empty()) {
    owner_.Send();
    for (const uint64_t id : std::exchange(ready_, {})) {
      const auto found = clients_.find(id);
      Client client = std::move(found->second);
      clients_.erase(found);
      Settled settled;
      if (Take(client, settled)) {
        Settle(client, settled);
      } else {
        clients_.emplace(id, std::move(client));
      }
    }
  }
  return std::min(owner_.next_wake(), decider_.next_wake());
}

// ---- Between the decider and the compare-and-set store

void Instance::Ask(const SharedRequest& request, Done done) {
  if (const auto answer = store::AnswerWithoutStore(request)) return done(*answer);
  const size_t key = KeyOf(request.name);
  const size_t number = host_.operations().size();
  host_.operations().push_back({.key = key,
                                .operation = request.operation,
                                .cost = request.lease ? 0 : request.cost,
                                .lease = request.lease.has_value(),
                                .called = host_.now()});
  if (asking_ != nullptr && !request.lease) asking_->operations.push_back(number);
  auto waiting = std::make_unique<WaitingRequest>(
      request, Now() + request.timeout, [this, number, key, done](const SharedAnswer& answer) {
        waiting_.erase(number);
        Operation& operation = host_.operations()[number];
        operation.returned = host_.now();
        operation.code = answer.status.code();
        operation.decision = answer.decision;
        operation.read = keys_[key].state;
        operation.read_at = decisions_.Now();
        done(answer);
      });
  waiting_[number] = waiting.get();
  asked_ = true;
  owner_.Ask(request.name, std::move(waiting));
}

// ---- Between the compare-and-set store and the service

void Instance::Get(std::string_view name, BootTime deadline, GetDone done) {
  host_.Get(*this, KeyOf(name), deadline, std::move(done));
}

void Instance::Put(const store::cas::PutRequest& request, PutDone done) {
  const size_t index = KeyOf(request.name);
  Key& key = keys_[index];
  // The same bytes contain the same write id: they are sent once more.
  if (key.bytes != *request.bytes) {
    key.bytes = *request.bytes;
    key.put = host_.puts().size();
    strict_simulation::Put put{.key = index, .at = decisions_.Now(), .decided = host_.now()};
    for (const auto& [number, waiting] : waiting_) {
      const Operation& operation = host_.operations()[number];
      // A waiting operation with a decision belongs to this round.
      if (operation.key != index || waiting->answer.decision.limit == 0) continue;
      host_.operations()[number].puts.push_back(key.put);
      put.members.push_back(number);
    }
    host_.puts().push_back(std::move(put));
  }
  host_.Put(*this, index, key.put, request, std::move(done));
}

}  // namespace headgate::strict_simulation
