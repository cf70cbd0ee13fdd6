#include "headgate/observe/top_keys.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/limiter/bucket_key.h"
#include "headgate/limiter/bucket_name.h"

namespace headgate::observe {
namespace {

using base::HeavyHitters;
using limiter::DecisionEvent;
using limiter::Outcome;

bool Allows(Outcome outcome) {
  return outcome == Outcome::kAllowed || outcome == Outcome::kRepeated ||
         outcome == Outcome::kUnlimited;
}

}  // namespace

// The same requests, counted by each weight.
class TopKeys::Counts {
 public:
  explicit Counts(HeavyHitters::Keys keys)
      : by_{Empty(By::kRequests, keys), Empty(By::kDenials, keys), Empty(By::kCost, keys)} {}

  void Add(const base::Hash128& hash, std::string_view key, const HeavyHitters::Request& request) {
    for (HeavyHitters& one : by_) one.Add(hash, key, request);
  }
  void Merge(const Counts& other) {
    for (size_t i = 0; i < by_.size(); ++i) by_[i].Merge(other.by_[i]);
  }
  void Clear() {
    for (HeavyHitters& one : by_) one.Clear();
  }
  const HeavyHitters& of(By by) const { return by_[static_cast<size_t>(by)]; }

 private:
  static HeavyHitters Empty(By by, HeavyHitters::Keys keys) {
    return HeavyHitters({.by = by, .keys = keys, .counters = kCounters});
  }

  std::array<HeavyHitters, 3> by_;  // in the order of By
};

struct TopKeys::List {
  const uint32_t rule;
  base::Instant began;  // of `before`, or of the window if there was none before
  base::Instant window_began;
  Counts before;
  Counts window;
};

struct TopKeys::Published {
  base::Duration counted_for;
  Counts counts;
};

struct TopKeys::Asked {
  uint32_t rule;
  base::Instant at;
  std::shared_ptr<const Published> published{};
};

struct TopKeys::Tables {
  struct One {
    uint32_t rule;
    Counts counts;
  };
  std::vector<One> lists;
  HeavyHitters::Keys keys;
  std::string key{};  // reused

  void Add(const base::HashSecret& secret, const DecisionEvent& event) {
    if (event.rule != nullptr) return Add(secret, event, *event.match);
    // The limit of the request is for all of its entries.
    rule::Match all;
    all.step_count = static_cast<uint32_t>(event.entries.size());
    Add(secret, event, all);
  }
  void Add(const base::HashSecret& secret, const DecisionEvent& event, const rule::Match& match) {
    NameKey(event.domain, event.entries, match);
    Add(limiter::RuleBucketKey(secret, event.domain, event.entries, match, 0), event.outcome,
        event.cost, event.series);
  }
  void Add(const base::HashSecret& secret, const limiter::OwnKeyEvent& event, uint32_t number) {
    NameKey(event.key, {}, {});
    Add(base::HashBytes(secret, base::KeyKind::kRaw, event.key), event.outcome, event.cost, number);
  }

 private:
  void NameKey(std::string_view domain, std::span<const rule::Entry> entries,
               const rule::Match& match) {
    key.clear();
    if (keys != HeavyHitters::Keys::kClear) return;
    limiter::AppendShortKey(domain, entries, match, HeavyHitters::kKeyBytesMax, key);
  }
  void Add(const base::Hash128& hash, Outcome outcome, algorithm::Cost cost, uint32_t number) {
    for (One& list : lists) {
      if (list.rule != kAllRules && list.rule != number) continue;
      list.counts.Add(hash, key, {.allowed = Allows(outcome), .cost = cost, .label = number});
    }
  }
};

TopKeys::TopKeys(const Options& options)
    : options_(options),
      workers_(new Worker[options.workers]),
      rules_(kRulesMax),
      own_limits_(rules_.Add("", kOwnLimits)) {
  Hear(false);
}

TopKeys::~TopKeys() {
  for (uint32_t i = 0; i < options_.workers; ++i) delete workers_[i].tables.load();
}

template <typename Function>
void TopKeys::Count(uint32_t worker, Function add) {
  HEADGATE_CHECK(worker < options_.workers);
  std::atomic<Tables*>& place = workers_[worker].tables;
  Tables* const tables = place.exchange(nullptr, std::memory_order_acquire);
  if (tables == nullptr) return;  // counting has just ended
  add(*tables);
  place.store(tables, std::memory_order_release);
}

void TopKeys::OnDecision(uint32_t worker, const DecisionEvent& event) {
  if (event.outcome == Outcome::kNoRule) return;
  Count(worker, [&](Tables& tables) { tables.Add(options_.secret, event); });
}

void TopKeys::OnOwnKey(uint32_t worker, const limiter::OwnKeyEvent& event) {
  Count(worker, [&](Tables& tables) { tables.Add(options_.secret, event, own_limits_); });
}

void TopKeys::Hear(bool on) {
  HearDecisions(on);
  HearOwnKeys(on);
}

absl::StatusOr<TopKeys::Answer> TopKeys::Ask(const Question& question, base::Instant now) {
  uint32_t rule = kAllRules;
  if (question.rule) {
    const auto number = rules_.Find(question.rule->domain, question.rule->rule);
    if (!number) return absl::NotFoundError("there is no such rule");
    rule = *number;
  }
  std::shared_ptr<const Published> published;
  {
    const std::lock_guard lock(mutex_);
    auto asked = std::find_if(asked_.begin(), asked_.end(),
                              [rule](const Asked& one) { return one.rule == rule; });
    if (asked == asked_.end()) {
      if (asked_.size() >= kListsMax)
        return absl::ResourceExhaustedError("the keys of as many other rules are being counted");
      asked = asked_.insert(asked_.end(), {.rule = rule, .at = now});
    }
    asked->at = std::max(asked->at, now);
    published = asked->published;
  }
  if (published == nullptr) return Answer{};
  const HeavyHitters& counts = published->counts.of(question.by);
  Answer answer{.counted_for = published->counted_for,
                .total = counts.total(),
                .error_most = counts.error_most()};
  for (HeavyHitters::Hitter& hitter : counts.Top(question.count)) {
    std::optional<RuleNames::Name> name;
    if (hitter.label != RuleNames::kOther) name = rules_.At(hitter.label);
    answer.keys.push_back({.rule = std::move(name), .counts = std::move(hitter)});
  }
  return answer;
}

void TopKeys::Tick(base::Instant now) {
  const std::vector<uint32_t> rules = RulesAsked(now);
  if (rules.empty() && lists_.empty()) return;
  SetLists(rules, now);
  if (lists_.empty()) Hear(false);
  TakeTables();
  if (!lists_.empty()) Hear(true);
  Publish(now);
}

// Forgets what nobody has asked for lately.
std::vector<uint32_t> TopKeys::RulesAsked(base::Instant now) {
  std::vector<uint32_t> rules;
  const std::lock_guard lock(mutex_);
  std::erase_if(asked_, [now](const Asked& one) { return one.at + kKeptFor <= now; });
  for (const Asked& one : asked_) rules.push_back(one.rule);
  return rules;
}

void TopKeys::SetLists(const std::vector<uint32_t>& rules, base::Instant now) {
  const auto is_of = [](uint32_t rule) {
    return [rule](const std::unique_ptr<List>& list) { return list->rule == rule; };
  };
  std::vector<std::unique_ptr<List>> next;
  for (const uint32_t rule : rules) {
    const auto found = std::find_if(lists_.begin(), lists_.end(), is_of(rule));
    if (found != lists_.end()) {
      next.push_back(std::move(*found));
      lists_.erase(found);
    } else {
      next.push_back(std::make_unique<List>(List{.rule = rule,
                                                 .began = now,
                                                 .window_began = now,
                                                 .before = Counts(options_.keys),
                                                 .window = Counts(options_.keys)}));
    }
  }
  lists_ = std::move(next);
}

std::unique_ptr<TopKeys::Tables> TopKeys::MakeTables() const {
  if (lists_.empty()) return nullptr;
  auto tables = std::make_unique<Tables>(Tables{.lists = {}, .keys = options_.keys});
  for (const auto& list : lists_) tables->lists.push_back({list->rule, Counts(options_.keys)});
  tables->key.reserve(8 * HeavyHitters::kKeyBytesMax);
  return tables;
}

// Gives each thread empty tables for the lists of now, or none, and adds what it has counted to the
// lists.
void TopKeys::TakeTables() {
  const auto fits = [this](const Tables& tables) {
    return std::equal(
        tables.lists.begin(), tables.lists.end(), lists_.begin(), lists_.end(),
        [](const Tables::One& one, const auto& list) { return one.rule == list->rule; });
  };
  std::unique_ptr<Tables> spare;
  for (uint32_t i = 0; i < options_.workers; ++i) {
    std::atomic<Tables*>& place = workers_[i].tables;
    std::unique_ptr<Tables> next = spare != nullptr ? std::move(spare) : MakeTables();
    Tables* old = place.load(std::memory_order_relaxed);
    // A thread keeps its tables only for the moment in which it counts a decision.
    while ((counting_ && old == nullptr) ||
           !place.compare_exchange_weak(old, next.get(), std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      if (old == nullptr) std::this_thread::yield();
      old = place.load(std::memory_order_relaxed);
    }
    next.release();
    std::unique_ptr<Tables> taken(old);
    if (taken == nullptr) continue;
    for (const Tables::One& one : taken->lists) {
      for (const auto& list : lists_)
        if (list->rule == one.rule) list->window.Merge(one.counts);
    }
    if (!fits(*taken)) continue;
    for (Tables::One& one : taken->lists) one.counts.Clear();
    spare = std::move(taken);
  }
  counting_ = !lists_.empty();
}

void TopKeys::Publish(base::Instant now) {
  for (const auto& list : lists_) {
    auto published = std::make_shared<Published>(
        Published{.counted_for = now - list->began, .counts = list->before});
    published->counts.Merge(list->window);
    {
      const std::lock_guard lock(mutex_);
      for (Asked& one : asked_)
        if (one.rule == list->rule) one.published = published;
    }
    if (now - list->window_began < kWindow) continue;
    std::swap(list->before, list->window);
    list->window.Clear();
    list->began = std::exchange(list->window_began, now);
  }
}

}  // namespace headgate::observe
