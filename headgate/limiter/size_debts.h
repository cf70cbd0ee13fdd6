// Units that requests owe to buckets whose limit has a cost by size (rule/size_cost.h): a request
// has ended, was larger than what it had reserved, and its bucket does not contain the rest.
//
// A debt stays with the process that served the request. Units that come back to the bucket pay it
// first, and until it is paid the key is denied here: the size of all that has passed counts, as if
// the bucket could be overdrawn. Other instances see an empty bucket.
//
//   bucket 10 of 10, 1 per s; a response of 25 units, 1 of them reserved
//   ──▶ 9 are taken, 15 are owed ──▶ denied for 15 s, and then until the request itself fits
//
// A table of all loops. The loop that adds the first debt of a key also looks after its payment.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"

namespace headgate::limiter {

// Thread-safe.
class SizeDebts {
 public:
  // The most keys with a debt. Each takes about 50 bytes.
  static constexpr size_t kKeysMax = size_t{1} << 16;

  enum class Added : uint8_t {
    kToPay,    // the caller has to pay it
    kPaid,     // somebody pays this key already
    kNoPlace,  // too many keys: nothing is owed
  };
  // `cost` is above 0.
  Added Add(const base::Hash128& key, algorithm::Cost cost);
  // The units that are owed; the caller pays this key.
  algorithm::Cost OwedBy(const base::Hash128& key) const;
  // A part was taken from the bucket. Returns what was taken in excess, because a part of the debt
  // was cancelled meanwhile. The debt stays in the table, at 0 too.
  algorithm::Cost Pay(const base::Hash128& key, algorithm::Cost cost);
  // The bucket lacks the rest until `due`: denies the key.
  void Deny(const base::Hash128& key, base::Instant due);
  // Removes a debt of 0. False if it has grown meanwhile.
  bool EraseIfPaid(const base::Hash128& key);
  // Removes it, whatever is owed.
  algorithm::Cost Forget(const base::Hash128& key);
  // Takes back at most `cost` of what is owed. Returns how much.
  algorithm::Cost Cancel(const base::Hash128& key, algorithm::Cost cost);

  // Whether any key is denied. Cheap.
  bool any() const { return denied_.load(std::memory_order_relaxed) != 0; }
  struct Debt {
    algorithm::Cost owed = 0;
    base::Instant due{0};  // when the bucket contains what is owed, or as much as it can
  };
  // If the key is denied.
  std::optional<Debt> Find(const base::Hash128& key) const;

  uint64_t keys() const { return keys_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 16;  // so that loops seldom meet at a lock

  struct HashOf {
    size_t operator()(const base::Hash128& key) const { return static_cast<size_t>(key.low); }
  };
  struct Entry {
    algorithm::Cost owed = 0;
    base::Instant due{0};
    bool denied = false;
  };
  using Entries = absl::flat_hash_map<base::Hash128, Entry, HashOf>;
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    Entries entries;
  };

  Shard& ShardOf(const base::Hash128& key) { return shards_[key.high % kShards]; }
  const Shard& ShardOf(const base::Hash128& key) const { return shards_[key.high % kShards]; }
  void Erase(Shard& shard, Entries::iterator entry);

  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> keys_{0};
  std::atomic<uint64_t> denied_{0};
};

// The answer to a request of this cost while a debt denies its key. `limit` is that of the bucket.
algorithm::Decision DeniedByDebt(const algorithm::Limit& limit, const SizeDebts::Debt& debt,
                                 algorithm::Cost cost, base::Instant now);

}  // namespace headgate::limiter
