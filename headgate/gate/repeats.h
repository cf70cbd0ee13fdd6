// Recent verdicts by idempotency id. A proxy may ask twice about one request: nginx does so when it
// redirects a request internally, and most proxies when they retry. The second question gets the
// answer of the first and is not counted again.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/counter.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/gate/verdict.h"

namespace headgate::gate {

struct RepeatsOptions {
  // How long a verdict is repeated, after the hold in a queue if there is one. Raise it if the
  // proxy retries later than this.
  base::Duration window = std::chrono::seconds(10);
  // The most verdicts that are remembered; about 300 bytes each. Beyond it the oldest are
  // forgotten.
  size_t entries_max = size_t{1} << 17;
};

// Thread-safe: shared by all loops.
class Repeats {
 public:
  explicit Repeats(const RepeatsOptions& options) : options_(options) {}

  // Sets `verdict` to the remembered one, with its times as of `now`: while the first request is
  // held in a queue, the repeated one is held until the same time. `policy` holds the name of its
  // limit. False if there is none.
  bool Find(const base::Hash128& id, base::Instant now, Verdict& verdict, std::string& policy);
  void Remember(const base::Hash128& id, const Verdict& verdict, base::Instant now);

  // Verdicts forgotten before their time.
  uint64_t forgotten() const { return forgotten_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 16;  // so that loops seldom meet at a lock

  struct HashOf {
    size_t operator()(const base::Hash128& id) const { return id.low; }
  };
  struct Remembered {
    Verdict verdict;
    std::string policy;  // the name of the verdict's limit, which may outlive its rule
    base::Instant decided_at;
    base::Instant until;
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    absl::flat_hash_map<base::Hash128, Remembered, HashOf> verdicts;
    // The ids, each with the time until which it is remembered; oldest first.
    std::deque<std::pair<base::Instant, base::Hash128>> by_age;
  };

  Shard& ShardOf(const base::Hash128& id) { return shards_[id.high % kShards]; }

  const RepeatsOptions options_;
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> forgotten_{0};
};

}  // namespace headgate::gate
