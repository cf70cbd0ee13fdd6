// A store of your own: buckets in a std::map, decided by Headgate's pure functions. A store decides
// where a bucket lives; algorithm::Decide decides what it answers. This one is for rules that are
// decided one by one: for domains with `all_or_nothing` a store also reads TakeRequest::joined.
#include <cstdio>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/base/random_secret.h"
#include "headgate/library/limiter.h"
#include "headgate/store/store.h"

namespace {

using headgate::algorithm::BucketState;
using headgate::algorithm::Decision;
using headgate::algorithm::Hit;
using headgate::base::Instant;
using headgate::store::Operation;
using headgate::store::TakeRequest;

// The hits of a sliding_window_log. Other algorithms need none.
class Hits final : public headgate::algorithm::HitLog {
 public:
  bool empty() const override { return hits_.empty(); }
  size_t size() const override { return hits_.size(); }
  Hit Oldest() const override { return hits_.front(); }
  Hit Newest() const override { return hits_.back(); }
  void DropOldest() override { hits_.pop_front(); }
  void ReduceNewest(uint32_t cost) override {
    if (hits_.back().cost <= cost) return hits_.pop_back();
    hits_.back().cost -= cost;
  }
  uint32_t ReduceAt(Instant at, uint64_t cost) override {
    const uint64_t asked = cost;
    for (size_t i = hits_.size(); i-- > 0 && cost > 0;) {
      if (hits_[i].at != at) continue;
      const auto part = static_cast<uint32_t>(std::min<uint64_t>(cost, hits_[i].cost));
      cost -= part;
      hits_[i].cost -= part;
      if (hits_[i].cost == 0) hits_.erase(hits_.begin() + static_cast<ptrdiff_t>(i));
    }
    return static_cast<uint32_t>(asked - cost);
  }
  bool Append(Hit hit) override {
    hits_.push_back(hit);
    return true;
  }
  void ForEach(Visitor visit) const override {
    for (const Hit& hit : hits_) {
      if (!visit(hit)) return;
    }
  }

 private:
  std::deque<Hit> hits_;
};

class MapStore final : public headgate::store::Store {
 public:
  void Take(headgate::base::Strided<const TakeRequest> requests,
            headgate::base::Strided<Decision> decisions, Instant now) override {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < requests.size(); ++i) decisions[i] = TakeOne(requests[i], now);
  }
  const headgate::base::HashSecret& hash_secret() const override { return secret_; }
  headgate::store::LimitTable& limits() override { return limits_; }
  size_t size() const { return buckets_.size(); }

 private:
  struct Bucket {
    headgate::algorithm::Limit limit;
    BucketState state{};
    Hits hits{};
    headgate::algorithm::RememberedUntil remembered_until{};
  };

  Decision TakeOne(const TakeRequest& request, Instant now) {
    const headgate::algorithm::Limit& limit = request.limit->limit;
    const auto key = std::pair(request.key.high, request.key.low);
    Bucket& kept = buckets_.try_emplace(key, Bucket{.limit = limit}).first->second;
    if (kept.limit.spec() != limit.spec()) {
      Change(kept.limit, limit, kept.state, kept.hits, kept.remembered_until, now);
      kept.limit = limit;
    }
    switch (request.operation) {
      case Operation::kTake:
        return Decide(limit, kept.state, kept.hits, request.cost, now);
      case Operation::kPeek: {
        Bucket copy = kept;
        return Decide(limit, copy.state, copy.hits, request.cost, now);
      }
      case Operation::kRefund:
        return *Refund(limit, kept.state, kept.hits, request.cost, now);
      case Operation::kUndo:
        return *Undo(limit, kept.state, kept.hits, request.cost, request.taken_at, now);
      case Operation::kCharge:
        return Charge(limit, kept.state, kept.hits, request.cost, now);
      case Operation::kReset:
        Reset(limit, kept.state, kept.hits);
        return Decide(limit, kept.state, kept.hits, 0, now);
    }
    return {};
  }

  std::mutex mutex_;
  const headgate::base::HashSecret secret_ = headgate::base::RandomHashSecret();
  headgate::store::LimitTable limits_;
  std::map<std::pair<uint64_t, uint64_t>, Bucket> buckets_;
};

}  // namespace

int main() {
  MapStore store;
  auto limiter = headgate::Limiter::Make(
      {.rules = {"user: 3/hour sliding_window_log", "address: 1/hour fixed_window first_hit"},
       .store = &store});
  if (!limiter.ok()) {
    std::fprintf(stderr, "%s\n", limiter.status().ToString().c_str());
    return 1;
  }
  int passed = 0;
  for (int i = 0; i < 10; ++i) passed += limiter->Check("user", "ann") ? 1 : 0;
  for (int i = 0; i < 10; ++i) passed += limiter->Check("address", "192.0.2.1") ? 1 : 0;
  std::printf("%d of 20 passed, %d buckets\n", passed, static_cast<int>(store.size()));
  return 0;
}
