#include "headgate/limiter/brought_limits.h"

#include <cstddef>

#include "headgate/rule/given_limit.h"
#include "headgate/rule/rule_names.h"

namespace headgate::limiter {
namespace {

constexpr size_t kKeptMax = 1024;
constexpr size_t kIdWindowsKeptMax = 64;

// The handle of `id` in `kept`, which is made if it is not there.
template <typename Id, typename Make>
absl::StatusOr<store::LimitHandle> Keep(absl::flat_hash_map<Id, store::LimitHandle>& kept,
                                        size_t most, const Id& id, const Make& make) {
  if (const auto found = kept.find(id); found != kept.end()) return found->second;
  HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle, make());
  if (kept.size() >= most) kept.clear();
  kept.emplace(id, handle);
  return handle;
}

}  // namespace

ChosenLimit BroughtLimits::ChooseGiven(const PublishedLimit& limit, std::string_view given,
                                       std::vector<store::LimitHandle>& held) {
  ChosenLimit chosen{.limit = limit.limit.get(), .history = limit.history};
  const rule::GivenChoice choice = rule::ChooseGiven(*limit.given, given);
  const store::LimitEntry* found = nullptr;
  if (choice.given == rule::Given::kPlan) {
    found = limit.plans[choice.plan].get();
  } else if (choice.given != rule::Given::kUnknown) {
    const auto number = Number(limit, choice.number);
    // Without room for one more limit, the rule's own counts.
    if (number.ok()) found = held.emplace_back(*number).get();
  }
  if (found == nullptr || found->limit.spec() == chosen.limit->limit.spec()) return chosen;
  return {.limit = found, .history = {}};
}

absl::StatusOr<store::LimitHandle> BroughtLimits::Number(const PublishedLimit& limit,
                                                         uint32_t number) {
  const std::pair id{limit.limit->serial, number};
  return Keep(numbers_, kKeptMax, id, [&]() -> absl::StatusOr<store::LimitHandle> {
    HEADGATE_ASSIGN_OR_RETURN(
        const algorithm::Limit made,
        algorithm::Limit::Make(rule::WithRequests(limit.limit->limit.spec(), number)));
    return table_.Intern(made, 0, limit.limit->owner->owner);
  });
}

absl::StatusOr<store::LimitHandle> BroughtLimits::Override(const rule::OverrideLimit& limit) {
  const uint64_t id = uint64_t{limit.requests_per_unit} << 8 | static_cast<uint8_t>(limit.unit);
  return Keep(overrides_, kKeptMax, id, [&]() -> absl::StatusOr<store::LimitHandle> {
    HEADGATE_ASSIGN_OR_RETURN(
        const algorithm::Limit made,
        algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                                .requests = limit.requests_per_unit,
                                .period = rule::PeriodOf(limit.unit),
                                .count_denied = true}));
    return table_.Intern(made);
  });
}

absl::StatusOr<store::LimitHandle> BroughtLimits::IdWindow(const algorithm::LimitSpec& spec) {
  return Keep(id_windows_, kIdWindowsKeptMax, spec, [&]() -> absl::StatusOr<store::LimitHandle> {
    HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit made, algorithm::Limit::Make(spec));
    return table_.Intern(made);
  });
}

}  // namespace headgate::limiter
