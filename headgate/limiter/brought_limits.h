// Limits that requests bring: an override of Envoy, a number or a plan for a rule, the window of an
// id. A checker keeps their handles for later requests, up to a bound.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/status.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/rule/descriptor.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

// The limit of a request: the one that it brings, or the rule's own.
struct ChosenLimit {
  const store::LimitEntry* limit = nullptr;
  std::span<const store::LimitChange> history{};
};

// For one thread.
class BroughtLimits {
 public:
  explicit BroughtLimits(store::LimitTable& table) : table_(table) {}

  // The limit of a rule for a request that may bring another one (`given`; empty: it does not).
  // `held` keeps that one as long as the request needs it.
  ChosenLimit Choose(const PublishedLimit& limit, std::string_view given,
                     std::vector<store::LimitHandle>& held) {
    if (limit.given != nullptr && !given.empty()) [[unlikely]]
      return ChooseGiven(limit, given, held);
    return {.limit = limit.limit.get(), .history = limit.history};
  }
  // An override has Envoy's format and Envoy's meaning: a window aligned to the epoch that counts
  // denied hits.
  absl::StatusOr<store::LimitHandle> Override(const rule::OverrideLimit& limit);
  // The window in which the id of a request is remembered.
  absl::StatusOr<store::LimitHandle> IdWindow(const algorithm::LimitSpec& spec);

 private:
  ChosenLimit ChooseGiven(const PublishedLimit& limit, std::string_view given,
                          std::vector<store::LimitHandle>& held);
  absl::StatusOr<store::LimitHandle> Number(const PublishedLimit& limit, uint32_t number);

  store::LimitTable& table_;
  absl::flat_hash_map<uint64_t, store::LimitHandle> overrides_;
  // By limit of a rule, and number.
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, store::LimitHandle> numbers_;
  absl::flat_hash_map<algorithm::LimitSpec, store::LimitHandle> id_windows_;
};

}  // namespace headgate::limiter
