// The rules that apply to the descriptors of a request.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

struct Task;

// The rule of a descriptor.
struct Matched {
  rule::Match match;
  const rule::Rule* rule = nullptr;  // what applies after `replaces`
  bool domain_known = false;
  store::LimitHandle override_limit;
};

// By descriptor. Its memory is reused.
class Matches {
 public:
  void Find(const Task& task);

  Matched& operator[](size_t descriptor) { return matched_[descriptor]; }
  const Matched& operator[](size_t descriptor) const { return matched_[descriptor]; }
  const rule::Rule* RuleOf(size_t descriptor) const { return matched_[descriptor].rule; }

  // Features of the rules. A request pays only for those that a rule has.
  bool any_quota() const { return any_quota_; }
  bool any_shadow() const { return any_shadow_; }  // also a roll-out in shadow
  // Whether the request takes from all of its buckets or from none.
  bool all_or_nothing() const { return matched_.front().match.all_or_nothing; }

  bool IsQuota(size_t descriptor) const;
  // Whether a request passes by what its descriptors say. Rules in quota mode deny it only if all
  // of them do.
  bool PassesBy(absl::FunctionRef<bool(size_t)> allows) const;

 private:
  void Replace();

  std::vector<Matched> matched_;
  bool any_quota_ = false;
  bool any_shadow_ = false;
};

}  // namespace headgate::limiter
