// Several clients in front of a pool with `capacity: auto` (headgate/share) and a benchmark
// upstream, in virtual time. A seed repeats a run exactly.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/share/share_pool.h"
#include "tests/capacity/upstream.h"

namespace headgate::capacity {

struct ClientOptions {
  std::string name;
  double per_second = 0;
  // 0: requests come at random (Poisson). Else all requests of this time come at its beginning, at
  // the same moment as those of the other clients with such a time.
  base::Duration burst_every{0};
  uint32_t length_percent = kUsualPercent;  // of its requests, compared with others
  // Not 0: its requests are answered after this time, and need no worker (long polls).
  base::Duration hangs{0};
  // Its requests come under this many names, one after the other.
  size_t names = 1;
};

struct SharingOptions {
  uint64_t seed = 1;
  UpstreamOptions upstream{};
  base::Duration cycle = std::chrono::seconds(1);
  std::vector<ClientOptions> clients{};
};

// The requests of one client since the last call of Sharing::TakeLoad.
struct ClientLoad {
  uint64_t sent = 0;  // by the client
  uint64_t answered = 0;
  uint64_t failed = 0;
  uint64_t refused = 0;
  uint64_t refused_in_flight = 0;  // of them, because too many requests were in flight
  base::Instant last_refused{0};
  base::Duration latency_sum{0};  // of the answered ones
};

class Sharing {
 public:
  explicit Sharing(const SharingOptions& options);

  Upstream& upstream() { return upstream_; }
  base::Instant now() const { return now_; }
  void SetRate(size_t client, double per_second);
  // All requests in the upstream fail, and all others for `time`.
  void Restart(base::Duration time);
  void Run(base::Duration time);

  ClientLoad TakeLoad(size_t client) { return std::exchange(clients_[client].load, {}); }
  // Answers to all clients since the last call.
  uint64_t TakeAnswered() { return std::exchange(answered_, 0); }
  // In requests per second; 0 while unknown.
  double Found();
  uint32_t limit();

 private:
  struct Client {
    ClientOptions options;
    base::Instant next{0};
    ClientLoad load{};
    size_t next_name = 0;
  };
  struct Request {
    size_t client = 0;
    base::Instant sent{0};
    uint64_t number = 0;  // of the pool
  };

  void Plan(Client& client);
  void Arrive(size_t index);
  void Send(size_t index);
  void End(const Answer& answer);
  base::Instant NextHangingAt() const {
    return hanging_.empty() ? base::kInstantMax : hanging_.begin()->first;
  }
  share::PoolSnapshot& TakeSnapshot();

  std::unique_ptr<share::SharePool> pool_;
  Upstream upstream_;
  base::Random random_;
  base::Instant now_{0};
  base::Instant down_until_{0};
  std::vector<Client> clients_;
  std::deque<Request> requests_;                    // by number
  std::multimap<base::Instant, uint64_t> hanging_;  // by the time of their answers
  std::vector<Answer> answers_;
  uint64_t answered_ = 0;
  share::PoolSnapshot snapshot_;
};

}  // namespace headgate::capacity
