#include "headgate/limiter/limiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/check.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/rule/rule_names.h"

namespace headgate::limiter {

using algorithm::Decision;
using store::Operation;
using store::TakeRequest;

namespace {

constexpr size_t kOverridesCachedMax = 1024;

// The bucket of one limit of the matched rule.
base::Hash128 RuleKey(const base::HashSecret& secret, std::string_view domain, std::span<const rule::Entry> entries,
                      const rule::Match& match, uint8_t limit_index) {
  struct Shape {
    uint32_t limit_index;
    uint32_t shared;  // one bit per entry for which a pattern stands
  } shape{limit_index, 0};
  for (uint32_t i = 0; i < match.step_count; ++i) {
    if (match.steps[i].shared_pattern != nullptr) shape.shared |= 1u << i;
  }
  base::KeyHasher hasher(secret, base::KeyKind::kRule);
  hasher.Add(domain);
  hasher.Add({reinterpret_cast<const char*>(&shape), sizeof shape});
  for (uint32_t i = 0; i < match.step_count; ++i) {
    if (match.steps[i].shared_pattern != nullptr) {
      hasher.Add(*match.steps[i].shared_pattern);
    } else {
      hasher.Add(entries[i].key);
      hasher.Add(entries[i].value);
    }
  }
  return hasher.Finish();
}

base::Hash128 OverrideKey(const base::HashSecret& secret, std::string_view domain, std::span<const rule::Entry> entries,
                          rule::Unit unit) {
  const char unit_byte = static_cast<char>(unit);
  base::KeyHasher hasher(secret, base::KeyKind::kOverride);
  hasher.Add(domain);
  hasher.Add({&unit_byte, 1});
  for (const rule::Entry& entry : entries) {
    hasher.Add(entry.key);
    hasher.Add(entry.value);
  }
  return hasher.Finish();
}

// Is `a` tighter than `b`? A denial before an allowance, the longer wait before the shorter, the smaller rest.
bool Tighter(const Decision& a, const Decision& b) {
  if (a.allowed != b.allowed) return !a.allowed;
  if (!a.allowed) return a.retry_after > b.retry_after;
  if (a.remaining != b.remaining) return a.remaining < b.remaining;
  return a.reset_after > b.reset_after;
}

// Why there is no answer. `rule` is null for a limit that the request brought.
std::string Unasked(Operation operation, const rule::Rule* rule) {
  const std::string of = rule != nullptr ? fmt::format("rule {}", rule->label()) : "the request's own limit";
  switch (operation) {
    case Operation::kRefund:
      return fmt::format("the shared store cannot be asked: nothing of {} was refunded", of);
    case Operation::kReset:
      return fmt::format("the shared store cannot be asked: no bucket of {} was reset", of);
    default:
      return fmt::format("the shared store cannot be asked, and {} refuses then", of);
  }
}

}  // namespace

std::string_view Name(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomeCount> kNames{"allowed", "denied",    "shadow_denied", "never_fits",
                                                               "no_rule", "unlimited", "unavailable"};
  return kNames[static_cast<size_t>(outcome)];
}

Limiter::Limiter(store::Store& store, Observer* observer) : store_(store), observer_(observer) {}

Limiter::~Limiter() = default;

absl::Status Limiter::OnRules(std::shared_ptr<const rule::RuleSet> rules, base::Instant now) {
  std::lock_guard lock(mutex_);
  HEADGATE_ASSIGN_OR_RETURN(published_, Publish(std::move(rules), published_.get(), store_.limits(), observer_, now));
  generation_.fetch_add(1, std::memory_order_release);
  return absl::OkStatus();
}

std::shared_ptr<const PublishedRules> Limiter::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

std::shared_ptr<const rule::RuleSet> Limiter::rules() const {
  const auto set = published();
  return set == nullptr ? nullptr : set->rules;
}

// Where one request's decisions are worked out; kept, so that its memory is.
struct Checker::Scratch {
  struct Matched {
    rule::Match match;
    const rule::Rule* rule = nullptr;  // what applies after `replaces`
    bool domain_known = false;
    store::LimitHandle override_limit;
  };
  // Which descriptor a take belongs to.
  struct Source {
    uint32_t descriptor;
    uint32_t limit_index;  // in its rule
    const algorithm::Limit* limit;
  };

  std::vector<Matched> matched;
  std::vector<TakeRequest> takes;
  std::vector<Source> sources;
  std::vector<Decision> decisions;
  // With a fleet only.
  std::vector<SharedTerms> terms;
  std::vector<Settled> settled;
  absl::flat_hash_map<uint64_t, store::LimitHandle> overrides;
};

Checker::Checker(Limiter& limiter, uint32_t worker)
    : limiter_(limiter), worker_(worker), scratch_(std::make_unique<Scratch>()) {}

Checker::Checker(Limiter& limiter, uint32_t worker, Fleet& fleet, const BucketNaming& naming)
    : limiter_(limiter), worker_(worker), fleet_(&fleet), naming_(naming), scratch_(std::make_unique<Scratch>()) {}

Checker::~Checker() = default;

absl::Status Checker::Check(const Request& request, Response& response, base::Instant now, Pending* pending) {
  return Ask(Operation::kTake, request, response, now, pending);
}

absl::Status Checker::Peek(const Request& request, Response& response, base::Instant now, Pending* pending) {
  return Ask(Operation::kLook, request, response, now, pending);
}

absl::Status Checker::Refund(const Request& request, Response& response, base::Instant now, Pending* pending) {
  return Ask(Operation::kRefund, request, response, now, pending);
}

absl::Status Checker::Reset(const Request& request, Response& response, base::Instant now, Pending* pending) {
  return Ask(Operation::kReset, request, response, now, pending);
}

const rule::RuleSet* Checker::rules() {
  TakeUpRules();
  return rules_ == nullptr ? nullptr : rules_->rules.get();
}

void Checker::TakeUpRules() {
  const uint64_t generation = limiter_.generation_.load(std::memory_order_acquire);
  if (generation == generation_) [[likely]]
    return;
  rules_ = limiter_.published();
  generation_ = generation;
}

absl::Status Checker::Ask(Operation operation, const Request& request, Response& response, base::Instant now,
                          Pending* pending) {
  TakeUpRules();
  response.waiting = false;
  if (fleet_ == nullptr) return Decide(operation, request, response, now, nullptr);
  HEADGATE_CHECK(pending != nullptr);
  // A request that is asked again is decided by the rules that it was first asked by.
  auto& rules = pending->state_->rules;
  if (rules == nullptr) rules = rules_;
  answered_by_ = rules;
  std::swap(rules_, rules);
  pending->BeginRound();
  const absl::Status status = Decide(operation, request, response, now, pending);
  std::swap(rules_, rules);
  if (!response.waiting) pending->Forget();
  return status;
}

absl::Status Checker::Decide(Operation operation, const Request& request, Response& response, base::Instant now,
                             Pending* pending) {
  HEADGATE_RETURN_IF_ERROR(Match(request));
  response.descriptors.assign(request.descriptors.size(), Outcomes{});

  // Rules in shadow never stand in another rule's way: they are asked behind the others, and in an all-or-nothing
  // domain they consume only where those allowed.
  const bool all_or_nothing = rules_->rules->AllOrNothing(request.domain);
  scratch_->takes.clear();
  scratch_->sources.clear();
  scratch_->terms.clear();
  HEADGATE_RETURN_IF_ERROR(AddTakes(operation, request, /*shadow=*/false));
  if (all_or_nothing && operation == Operation::kTake) {
    for (TakeRequest& take : std::span(scratch_->takes).subspan(std::min<size_t>(1, scratch_->takes.size()))) {
      if (take.joined == store::Joined::kNo) take.joined = store::Joined::kOtherRule;
    }
  }
  const size_t enforced = scratch_->takes.size();
  HEADGATE_RETURN_IF_ERROR(AddTakes(operation, request, /*shadow=*/true));

  std::vector<Decision>& decisions = scratch_->decisions;
  decisions.resize(scratch_->takes.size());
  response.waiting = !Take(request, 0, enforced, pending, now);
  if (response.waiting) return absl::OkStatus();
  if (enforced < scratch_->takes.size()) {
    const bool denied = std::any_of(decisions.begin(), decisions.begin() + static_cast<ptrdiff_t>(enforced),
                                    [](const Decision& decision) { return !decision.allowed; });
    if (all_or_nothing && denied && operation == Operation::kTake) {
      for (TakeRequest& take : std::span(scratch_->takes).subspan(enforced)) {
        take.operation = Operation::kLook;
        take.joined = store::Joined::kNo;
      }
    }
    response.waiting = !Take(request, enforced, scratch_->takes.size() - enforced, pending, now);
    if (response.waiting) return absl::OkStatus();
  }
  return Conclude(operation, request, response);
}

// Decides `count` of the takes. False where the answers come later.
bool Checker::Take(const Request& request, size_t first, size_t count, Pending* pending, base::Instant now) {
  const std::span<TakeRequest> takes = std::span(scratch_->takes).subspan(first, count);
  if (fleet_ == nullptr) {
    limiter_.store_.Take(takes, std::span(scratch_->decisions).subspan(first, count), now);
    return true;
  }
  if (count == 0) return true;
  const auto name = [&](size_t index, std::string& out) {
    const Scratch::Source& source = scratch_->sources[first + index];
    const rule::Descriptor& descriptor = request.descriptors[source.descriptor];
    const Scratch::Matched& m = scratch_->matched[source.descriptor];
    if (m.rule != nullptr) {
      AppendRuleBucket(naming_, request.domain, descriptor.entries, m.match, source.limit_index, out);
    } else {
      AppendOverrideBucket(naming_, request.domain, descriptor.entries, descriptor.override_limit->unit, out);
    }
  };
  scratch_->settled.resize(scratch_->takes.size());
  const std::span<Settled> settled = std::span(scratch_->settled).subspan(first, count);
  if (!fleet_->Take(takes, std::span(scratch_->terms).subspan(first, count), name, settled, *pending, now))
    return false;
  for (size_t i = 0; i < count; ++i) scratch_->decisions[first + i] = settled[i].decision;
  return true;
}

absl::Status Checker::Match(const Request& request) {
  if (request.domain.empty()) return absl::InvalidArgumentError("rate limit domain must not be empty");
  if (request.descriptors.empty()) return absl::InvalidArgumentError("rate limit descriptor list must not be empty");
  if (request.descriptors.size() > rule::kDescriptorsMax) {
    return absl::InvalidArgumentError(fmt::format("more than {} descriptors", rule::kDescriptorsMax));
  }
  if (rules_ == nullptr) return absl::FailedPreconditionError("no rate limit configuration loaded");

  auto& matched = scratch_->matched;
  matched.resize(request.descriptors.size());
  bool any_replaces = false;
  for (size_t i = 0; i < matched.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    if (descriptor.entries.size() > rule::kEntriesMax) {
      return absl::InvalidArgumentError(fmt::format("more than {} entries in a descriptor", rule::kEntriesMax));
    }
    Scratch::Matched& m = matched[i];
    m.domain_known = rules_->rules->Find(request.domain, descriptor.entries, m.match);
    m.rule = descriptor.override_limit ? nullptr : m.match.rule;
    any_replaces = any_replaces || (m.rule != nullptr && !m.rule->replaces.empty());
  }
  if (any_replaces) [[unlikely]] {
    for (const Scratch::Matched& replacing : matched) {
      if (replacing.match.rule == nullptr) continue;
      for (const std::string& name : replacing.match.rule->replaces) {
        for (Scratch::Matched& m : matched) {
          if (m.rule != nullptr && m.rule->name == name) m.rule = nullptr;
        }
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Checker::AddTakes(Operation operation, const Request& request, bool shadow) {
  const base::HashSecret& secret = limiter_.store_.hash_secret();
  const algorithm::Cost default_cost = operation == Operation::kLook ? 0 : 1;
  for (uint32_t i = 0; i < request.descriptors.size(); ++i) {
    const rule::Descriptor& descriptor = request.descriptors[i];
    Scratch::Matched& m = scratch_->matched[i];
    const algorithm::Cost cost = descriptor.cost.value_or(default_cost);
    if (descriptor.override_limit && m.domain_known && !shadow) {
      HEADGATE_ASSIGN_OR_RETURN(m.override_limit, OverrideLimit(*descriptor.override_limit));
      scratch_->takes.push_back(
          {.key = OverrideKey(secret, request.domain, descriptor.entries, descriptor.override_limit->unit),
           .limit = m.override_limit.get(),
           .cost = cost,
           .operation = operation});
      scratch_->sources.push_back({i, 0, &m.override_limit->limit});
      if (fleet_ != nullptr) scratch_->terms.push_back(fleet_->default_terms());
      continue;
    }
    if (m.rule == nullptr || m.rule->unlimited || m.rule->shadow_mode != shadow) continue;
    const std::vector<PublishedLimit>& limits = rules_->published[m.rule->index].limits;
    for (size_t k = 0; k < limits.size(); ++k) {
      const algorithm::Limit& limit = limits[k].limit->limit;
      if (operation == Operation::kRefund && limit.algorithm() == algorithm::Algorithm::kLeakyBucketQueue) {
        return absl::FailedPreconditionError(fmt::format(
            "rule {}: a queue takes nothing back: its requests have been promised their turn", m.rule->label()));
      }
      scratch_->takes.push_back(
          {.key = RuleKey(secret, request.domain, descriptor.entries, m.match, static_cast<uint8_t>(k)),
           .limit = limits[k].limit.get(),
           .history = limits[k].history,
           .cost = cost,
           .operation = operation,
           .joined = k > 0 && operation == Operation::kTake ? store::Joined::kSameRule : store::Joined::kNo});
      scratch_->sources.push_back({i, static_cast<uint32_t>(k), &limit});
      if (fleet_ != nullptr) scratch_->terms.push_back(fleet_->TermsOf(*m.rule));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<store::LimitHandle> Checker::OverrideLimit(const rule::OverrideLimit& limit) {
  auto& cache = scratch_->overrides;
  const uint64_t id = uint64_t{limit.requests_per_unit} << 8 | static_cast<uint8_t>(limit.unit);
  if (const auto found = cache.find(id); found != cache.end()) return found->second;
  // An override is in Envoy's words and means what Envoy means: a window on the epoch that counts denied hits.
  HEADGATE_ASSIGN_OR_RETURN(const algorithm::Limit made,
                            algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kFixedWindow,
                                                    .requests = limit.requests_per_unit,
                                                    .period = rule::PeriodOf(limit.unit),
                                                    .count_denied = true}));
  HEADGATE_ASSIGN_OR_RETURN(store::LimitHandle handle, limiter_.store_.limits().Intern(made));
  if (cache.size() >= kOverridesCachedMax) cache.clear();
  cache.emplace(id, handle);
  return handle;
}

absl::Status Checker::Conclude(Operation operation, const Request& request, Response& response) {
  for (size_t t = 0; t < scratch_->takes.size(); ++t) {
    Outcomes& outcome = response.descriptors[scratch_->sources[t].descriptor];
    const Decision& decision = scratch_->decisions[t];
    const base::Duration wait = std::max(outcome.decision.wait, decision.wait);
    if (outcome.limit == nullptr || Tighter(decision, outcome.decision)) {
      outcome.limit = scratch_->sources[t].limit;
      outcome.decision = decision;
    }
    outcome.decision.wait = wait;
    if (fleet_ != nullptr) outcome.mode = std::max(outcome.mode, scratch_->settled[t].mode);
  }

  // A refund or a reset that was not done has to be known, also of a rule in shadow.
  const bool changes = operation == Operation::kRefund || operation == Operation::kReset;
  bool denied = false;
  const rule::Rule* unavailable = nullptr;
  bool any_unavailable = false;
  size_t quota_count = 0, quota_denied = 0;
  for (size_t i = 0; i < response.descriptors.size(); ++i) {
    Outcomes& outcome = response.descriptors[i];
    const Scratch::Matched& m = scratch_->matched[i];
    outcome.rule = m.rule;
    if (m.rule != nullptr && m.rule->unlimited) {
      outcome.outcome = Outcome::kUnlimited;
    } else if (outcome.limit != nullptr) {
      const bool shadow = m.rule != nullptr && m.rule->shadow_mode;
      if (outcome.mode == Mode::kClosed && (changes || !shadow)) {
        outcome.outcome = Outcome::kUnavailable;
        any_unavailable = true;
        unavailable = m.rule;
      } else if (outcome.decision.allowed) {
        outcome.outcome = Outcome::kAllowed;
      } else if (shadow) {
        outcome.outcome = Outcome::kShadowDenied;
      } else {
        outcome.outcome = outcome.decision.never_fits() ? Outcome::kNeverFits : Outcome::kDenied;
      }
    }
    const bool quota = m.rule != nullptr && m.rule->quota_mode;
    if (quota) {
      ++quota_count;
      quota_denied += outcome.allowed() ? 0u : 1u;
    } else {
      denied = denied || !outcome.allowed();
    }
    if (limiter_.observer_ != nullptr && operation == Operation::kTake) {
      limiter_.observer_->OnDecision(worker_,
                                     {.outcome = outcome.outcome,
                                      .cost = request.descriptors[i].cost.value_or(1),
                                      .rule = m.rule,
                                      .series = m.rule != nullptr ? rules_->published[m.rule->index].series : 0,
                                      .domain = request.domain,
                                      .entries = request.descriptors[i].entries,
                                      .match = &m.match});
    }
  }
  // Rules in quota mode deny together, when all of them do.
  response.allowed = !denied && (quota_count == 0 || quota_denied < quota_count);
  if (!any_unavailable) return absl::OkStatus();
  return absl::UnavailableError(Unasked(operation, unavailable));
}

}  // namespace headgate::limiter
