// Compares a store with separate buckets, one per key: random requests go to both, and the answers
// must be equal.
#pragma once

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/store/store.h"
#include "headgate/testing/deque_hit_log.h"

namespace headgate::testing {

// Limits of every algorithm, alignment and kind of rate, each with at least two requests.
std::vector<algorithm::LimitSpec> ContractLimits();

std::string ToString(const algorithm::LimitSpec& spec);
std::string ToString(const algorithm::Decision& decision);

// The store's handle of a limit that is known to be valid.
store::LimitHandle HandleOf(store::Store& store, const algorithm::LimitSpec& spec,
                            uint32_t version = 0);

// A single bucket without a store.
class LoneBucket {
 public:
  // Ignores the request's key, history and group.
  algorithm::Decision Ask(const algorithm::Limit& limit, const store::TakeRequest& request,
                          base::Instant now);
  void Change(const algorithm::Limit& from, const algorithm::Limit& to, base::Instant at);

 private:
  algorithm::BucketState state_;
  DequeHitLog hits_;
  algorithm::RememberedUntil remembered_until_{};
};

class StoreMirror {
 public:
  // Mirrors with different seeds or limits use different keys.
  StoreMirror(store::Store& store, const algorithm::LimitSpec& spec, base::Instant start,
              uint64_t seed);

  // Advances time and sends a batch to both. Returns the first difference, or an empty string.
  std::string Step();

  // Changes the limit of all keys from now on.
  void Change(const algorithm::LimitSpec& spec);

 private:
  uint64_t Draw(uint64_t below) { return random_() % below; }
  base::Duration DrawPause();
  store::TakeRequest DrawRequest();

  store::Store& store_;
  const std::string name_;
  std::mt19937_64 random_;
  base::Instant now_;
  std::array<base::Instant, 4> earlier_{};  // times of some steps
  store::LimitHandle limit_;
  std::vector<store::LimitHandle> former_;  // pins the limits of the history
  std::vector<store::LimitChange> history_;
  std::vector<std::string> keys_;
  std::map<std::string, LoneBucket> lone_;
};

}  // namespace headgate::testing
