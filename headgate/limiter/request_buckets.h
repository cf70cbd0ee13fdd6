// The buckets of a request: the batch, in the order in which it is decided.
//
//   rules in quota mode │ the id of the request, other rules │ rules and roll-outs in shadow
//                     group                              enforced
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/status.h"
#include "headgate/limiter/brought_limits.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/matches.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/settled.h"
#include "headgate/rule/rule_set.h"
#include "headgate/rule/size_cost.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

struct Task;

// The request of a batch that remembers the id belongs to no descriptor.
inline constexpr uint32_t kOfId = UINT32_MAX;

// Whether `a` is tighter than `b`: a denial is tighter than an allowance, then the longer wait,
// then a block, then the smaller rest.
inline bool Tighter(const algorithm::Decision& a, const algorithm::Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) return a.retry_after > b.retry_after;
  if (a.blocked_for != b.blocked_for) return a.blocked_for > b.blocked_for;
  if (a.remaining != b.remaining) return a.remaining < b.remaining;
  return a.reset_after > b.reset_after;
}

// If requests may bring a limit, also for the requests that bring none: leases by two limits would
// be spent side by side.
inline SharedTerms TermsFor(const PublishedLimit& limit, SharedTerms terms) {
  if (limit.given != nullptr && terms.sharing == rule::Sharing::kLeased)
    terms.sharing = rule::Sharing::kExact;
  return terms;
}

// A limit of a rule for a descriptor: a bucket.
struct BucketOf {
  uint32_t descriptor;
  uint32_t limit_index;  // in its rule; those of a roll-out in shadow follow
};

// The descriptor and the limit that a request of the batch belongs to.
struct BucketSource {
  uint32_t descriptor = 0;
  uint32_t limit_index = 0;  // in its rule; those of a roll-out in shadow follow
  const algorithm::Limit* limit = nullptr;
  const rule::SizeCost* size = nullptr;  // if the request costs as much as its size

  bool of_shadow_rollout() const { return limit_index >= rule::kLimitsPerRuleMax; }
};

// Its memory is reused.
class RequestBuckets {
 public:
  void Clear();

  // Makes the requests to buckets, in the order in which they are decided. FailedPrecondition for a
  // refund to a limit that takes none.
  absl::Status Add(const Task& task);
  // `entry` is about one limit of a rule, and the only request.
  void AddOnly(const BatchEntry& entry, const BucketSource& source);
  void AddId(const BatchEntry& entry, const algorithm::Limit& limit);
  // `follows`: it is not the first one of its rule.
  void AddLimit(const Task& task, BucketOf of, const PublishedLimit& published,
                const ChosenLimit& chosen, bool follows);
  ChosenLimit Choose(const Task& task, uint32_t descriptor, const PublishedLimit& limit);

  // ---- The steps. Each decision is false if the answers come later.
  bool DecideQuotas(const Task& task) { return DecidePart(task, 0, group_); }
  void ReadQuotas(const Task& task);
  // The id of a refund, which is the first request of the batch.
  bool DecideId(const Task& task) { return DecidePart(task, 0, 1); }
  bool DecideMembers(const Task& task);
  // The costs of the quotas go back if the group denies.
  bool GiveBackQuotas(const Task& task);
  bool DecideShadows(const Task& task);
  // Gives back the costs of these descriptors, as far as their limits take them back.
  bool GiveBack(const Task& task, absl::FunctionRef<bool(uint32_t)> of_descriptor);
  void ReadReturns();
  // Only peeks at the bucket of a request of the batch.
  void PeekOnly(size_t index);

  bool has_quotas() const { return group_ > 0; }
  bool any_size() const { return any_size_; }
  bool joined() const { return joined_; }

  size_t size() const { return batch_.size(); }
  BatchEntry& entry(size_t index) { return batch_[index]; }
  const BatchEntry& entry(size_t index) const { return batch_[index]; }
  const BucketSource& source(size_t index) const { return sources_[index]; }
  // The id, which is the first of the group.
  const BatchEntry& id() const { return batch_[group_]; }

  // Whether a bucket of the descriptor denies.
  bool Denies(uint32_t descriptor) const;
  // Whether a request that was not confirmed may have been executed.
  bool PerhapsDone(uint32_t descriptor) const;
  NoAnswer WhyUnasked(uint32_t descriptor) const;

 private:
  // The requests of a batch by the rules that they belong to.
  enum class Part : uint8_t {
    kEnforced,  // quotas and group
    kQuotas,    // in quota mode
    kGroup,     // neither in quota mode nor in shadow
    kShadow
  };
  absl::Status AddPart(const Task& task, Part part);
  absl::Status AddRule(const Task& task, uint32_t descriptor);
  absl::Status AddOverride(const Task& task, uint32_t descriptor);
  bool DecidePart(const Task& task, size_t first, size_t count);
  bool Decide(const Task& task, std::span<BatchEntry> entries,
              absl::FunctionRef<size_t(size_t)> place);
  bool MembersDeny() const;
  // The id, if there is one, and the rules that are neither quotas nor in shadow.
  std::span<BatchEntry> members() { return std::span(batch_).subspan(group_, enforced_ - group_); }
  std::span<const BatchEntry> members() const {
    return std::span(batch_).subspan(group_, enforced_ - group_);
  }

  std::vector<BatchEntry> batch_;
  std::vector<BucketSource> sources_;  // by position in the batch
  size_t group_ = 0;
  size_t enforced_ = 0;
  bool joined_ = false;  // the group takes from all of its buckets or from none
  bool any_size_ = false;
  bool quotas_deny_ = false;
  std::vector<store::LimitHandle> brought_;  // limits that the request has brought
  // The requests that give costs back, and their places in the batch.
  std::vector<BatchEntry> undos_;
  std::vector<size_t> undo_places_;
};

}  // namespace headgate::limiter
