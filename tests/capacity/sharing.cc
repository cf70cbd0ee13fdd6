#include "tests/capacity/sharing.h"

#include <algorithm>

namespace headgate::capacity {

using base::Duration;
using base::Instant;
using std::chrono::seconds;

Sharing::Sharing(const SharingOptions& options)
    : pool_(*share::SharePool::Make({.pool = {.cycle = options.cycle, .reservation = {1, 10}},
                                     .find_capacity = CapacityOptions{.seed = options.seed}})),
      upstream_(options.upstream, options.seed * 2 + 1),
      random_(options.seed * 2) {
  for (const ClientOptions& client : options.clients) {
    clients_.push_back({.options = client});
    Plan(clients_.back());
  }
}

void Sharing::SetRate(size_t client, double per_second) {
  clients_[client].options.per_second = per_second;
  Plan(clients_[client]);
}

void Sharing::Plan(Client& client) {
  const ClientOptions& options = client.options;
  if (options.per_second <= 0) {
    client.next = base::kInstantMax;
  } else if (options.burst_every.count() > 0) {
    const int64_t periods = (now_ - Instant{0}) / options.burst_every;
    client.next = Instant{0} + (periods + 1) * options.burst_every;
  } else {
    const auto mean = Duration(static_cast<int64_t>(1e9 / options.per_second));
    client.next = now_ + DrawExponential(mean, random_);
  }
}

void Sharing::Restart(Duration time) {
  down_until_ = now_ + time;
  upstream_.SetFailing(100);
  answers_.clear();
  upstream_.Crash(answers_);
  for (const Answer& answer : answers_) End(answer);
}

void Sharing::Run(Duration time) {
  const Instant end = now_ + time;
  while (true) {
    const auto first = std::min_element(
        clients_.begin(), clients_.end(),
        [](const Client& left, const Client& right) { return left.next < right.next; });
    const Instant upstream_at = upstream_.NextAt();
    const Instant hanging_at = NextHangingAt();
    const Instant next = std::min({first->next, upstream_at, hanging_at});
    if (next > end) break;
    now_ = next;
    if (hanging_at == next) {
      const uint64_t request = hanging_.extract(hanging_.begin()).mapped();
      End({.request = request});
      continue;
    }
    if (down_until_ > Instant{0} && now_ >= down_until_) {
      down_until_ = Instant{0};
      upstream_.SetFailing(0);
    }
    if (first->next <= upstream_at) {
      Arrive(static_cast<size_t>(first - clients_.begin()));
      continue;
    }
    answers_.clear();
    upstream_.Step(answers_);
    for (const Answer& answer : answers_) End(answer);
  }
  now_ = end;
}

void Sharing::Arrive(size_t index) {
  Client& client = clients_[index];
  Plan(client);
  const Duration every = client.options.burst_every;
  if (every.count() == 0) return Send(index);
  const auto count = static_cast<uint64_t>(client.options.per_second *
                                           std::chrono::duration<double>(every).count());
  for (uint64_t i = 0; i < count; ++i) Send(index);
}

void Sharing::Send(size_t index) {
  Client& client = clients_[index];
  ++client.load.sent;
  std::string name = client.options.name;
  if (client.options.names > 1) name += std::to_string(client.next_name++ % client.options.names);
  const share::PoolAnswer verdict = pool_->Admit(name, 1, now_);
  if (!verdict.admitted) {
    ++client.load.refused;
    if (verdict.reason == share::Reason::kInFlight) ++client.load.refused_in_flight;
    client.load.last_refused = now_;
    return;
  }
  const uint64_t request = requests_.size();
  requests_.push_back({index, now_, verdict.number});
  if (client.options.hangs.count() > 0) {
    hanging_.emplace(now_ + client.options.hangs, request);
    return;
  }
  if (upstream_.OnRequest(request, now_, client.options.length_percent))
    End({.request = request, .failed = true});
}

void Sharing::End(const Answer& answer) {
  const Request& request = requests_[answer.request];
  ClientLoad& load = clients_[request.client].load;
  if (answer.failed) {
    ++load.failed;
  } else {
    ++load.answered;
    ++answered_;
    load.latency_sum += now_ - request.sent;
  }
  pool_->OnEnd({.number = request.number,
                .outcome = answer.failed ? RequestEnd::kFailed : RequestEnd::kAnswered,
                .sent_at = request.sent},
               now_);
}

share::PoolSnapshot& Sharing::TakeSnapshot() {
  pool_->TakeSnapshot(now_, snapshot_);
  return snapshot_;
}

double Sharing::Found() {
  return static_cast<double>(TakeSnapshot().upstream->per_1000_s.value_or(0)) / 1000;
}

uint32_t Sharing::limit() { return TakeSnapshot().upstream->limit; }

}  // namespace headgate::capacity
