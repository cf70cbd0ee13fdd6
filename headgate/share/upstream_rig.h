// Clients in front of a pool with `capacity: auto`, and an upstream of known capacity behind it: a
// number of workers that need the same time for each request, in order of arrival. In virtual time;
// a seed repeats a run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/share/share_pool.h"

namespace headgate::share {

struct Load {
  uint64_t sent = 0;  // by the client
  uint64_t admitted = 0;
  uint64_t above_share = 0;  // of the admitted ones
  uint64_t answered = 0;
};

class UpstreamRig {
 public:
  UpstreamRig(SharePool& pool, uint64_t seed) : pool_(pool), random_(seed) { SetWorkers(10); }

  base::Instant now() const { return now_; }
  void SetWorkers(size_t workers) { free_at_.assign(workers, now_); }
  // How many requests a client sends per second, at random times.
  void SetClient(const std::string& name, uint64_t per_second) {
    clients_[name].per_second = per_second;
    PlanArrival(clients_[name]);
  }
  // The client hangs up after this time; the upstream does not notice.
  void SetHangsUp(const std::string& name, base::Duration after) {
    clients_[name].hangs_up_after = after;
  }
  std::map<std::string, Load> TakeLoads() {
    std::map<std::string, Load> loads;
    for (auto& [name, client] : clients_) loads[name] = std::exchange(client.load, Load{});
    return loads;
  }

  void Run(base::Duration time) {
    const base::Instant end = now_ + time;
    while (true) {
      Client* first = nullptr;
      const std::string* name = nullptr;
      for (auto& [client_name, client] : clients_) {
        if (client.per_second == 0 || (first != nullptr && client.next >= first->next)) continue;
        first = &client;
        name = &client_name;
      }
      const base::Instant arrival = first != nullptr ? first->next : base::kInstantMax;
      const base::Instant answer =
          in_flight_.empty() ? base::kInstantMax : in_flight_.begin()->first;
      if (std::min(arrival, answer) > end) break;
      now_ = std::min(arrival, answer);
      answer <= arrival ? End() : Arrive(*name, *first);
    }
    now_ = end;
  }

 private:
  static constexpr base::Duration kService = std::chrono::milliseconds(10);

  struct Client {
    uint64_t per_second = 0;
    base::Instant next{0};
    base::Duration hangs_up_after = base::kDurationMax;
    Load load{};
  };
  struct Request {
    Client* client = nullptr;
    base::Instant sent{0};
    uint64_t number = 0;  // of the pool
    bool hung_up = false;
  };

  // Uniform between 0 and twice the mean, so that clients do not keep step.
  void PlanArrival(Client& client) {
    if (client.per_second == 0) return;
    client.next =
        now_ +
        base::Duration(static_cast<int64_t>(random_.Below(2'000'000'000 / client.per_second)));
  }

  void Arrive(const std::string& name, Client& client) {
    PlanArrival(client);
    ++client.load.sent;
    const PoolAnswer verdict = pool_.Admit(name, 1, now_);
    client.load.above_share += verdict.reason == Reason::kAboveShare;
    if (!verdict.admitted) return;
    ++client.load.admitted;
    base::Instant& worker = *std::min_element(free_at_.begin(), free_at_.end());
    worker = std::max(worker, now_) + kService;
    const base::Instant left = base::Clamp(now_ + client.hangs_up_after);
    in_flight_.emplace(
        std::min(worker, left),
        Request{
            .client = &client, .sent = now_, .number = verdict.number, .hung_up = left < worker});
  }

  void End() {
    const Request request = in_flight_.extract(in_flight_.begin()).mapped();
    if (!request.hung_up) ++request.client->load.answered;
    pool_.OnEnd(
        {.number = request.number,
         .outcome = request.hung_up ? capacity::RequestEnd::kLeft : capacity::RequestEnd::kAnswered,
         .sent_at = request.sent},
        now_);
  }

  SharePool& pool_;
  base::Random random_;
  base::Instant now_ = base::Instant::FromNanos(1'000'000'000);
  std::map<std::string, Client> clients_;
  std::vector<base::Instant> free_at_;
  std::multimap<base::Instant, Request> in_flight_;  // by the time of their answers
};

}  // namespace headgate::share
