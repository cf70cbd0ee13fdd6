// The keys with the most requests, the most denials and the largest cost of the last seconds, of
// all rules or of one. They are counted only while somebody asks:
//
//   Ask               begins a list at the next Tick, and keeps it for a minute
//   a decision        is counted by its thread, in tables of its own
//   Tick              every second: takes the tables of all threads, gives them empty ones,
//                     and adds the counts to the lists. No thread waits; an answer is at most a
//                     second old
//   no list is left   nothing is counted: a decision only reads one flag
//
// A list is of the last 10 to 20 seconds: it has a full window of ten seconds, and the one that has
// begun. Its counts have the bounds of base::HeavyHitters with m = 256 counters, and N as the sum
// of all weights in both windows.
//
// A list takes 0.23 MB for each thread, and four times that for the windows. There are at most
// kListsMax.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/hash.h"
#include "headgate/base/heavy_hitters.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/observer.h"
#include "headgate/observe/rule_names.h"

namespace headgate::observe {

class TopKeys final : public limiter::Observer {
 public:
  using By = base::HeavyHitters::By;

  static constexpr size_t kCounters = 256;
  static constexpr size_t kListsMax = 8;
  // Further rules have no list of their own, and their keys are shown without a rule.
  static constexpr uint32_t kRulesMax = 16'384;
  // The rule of keys that come with limits of their own, in the empty domain.
  static constexpr std::string_view kOwnLimits = "CL.THROTTLE";
  static constexpr base::Duration kKeptFor = std::chrono::minutes(1);
  static constexpr base::Duration kWindow = std::chrono::seconds(10);

  struct Options {
    // As of Metrics.
    uint32_t workers = 1;
    base::HashSecret secret{};
    base::HeavyHitters::Keys keys = base::HeavyHitters::Keys::kClear;
  };
  explicit TopKeys(const Options& options);
  ~TopKeys() override;

  struct Question {
    std::optional<RuleNames::Name> rule{};  // none: all rules
    By by = By::kRequests;
    size_t count = kCounters;
  };
  struct Key {
    std::optional<RuleNames::Name> rule{};  // none: the request brought the limit
    // A key is the domain and the matched entries, as in the name of its bucket, or the key of
    // kOwnLimits. `denied` counts what the rule denied, even if the request passed (in shadow, in
    // passthrough).
    base::HeavyHitters::Hitter counts;
  };
  struct Answer {
    base::Duration counted_for{0};  // 0: counting has not begun
    uint64_t total = 0;             // of all keys
    uint64_t error_most = 0;
    std::vector<Key> keys{};  // the largest first
  };
  // NotFound if there is no such rule, ResourceExhausted if there is no room for its list. From any
  // thread.
  absl::StatusOr<Answer> Ask(const Question& question, base::Instant now);

  // Call it about every second, from one thread.
  void Tick(base::Instant now);

  // ---- Events of the limiter. No lock and no allocation.
  uint32_t OnRule(const rule::Rule& rule) override { return rules_.Add(rule.domain, rule.label()); }
  void OnDecision(uint32_t worker, const limiter::DecisionEvent& event) override;
  void OnOwnLimits(uint32_t /*worker*/, limiter::Outcome /*outcome*/, uint64_t /*count*/) override {
  }
  void OnOwnKey(uint32_t worker, const limiter::OwnKeyEvent& event) override;

 private:
  // Which rule a list is of: its number, or all of them.
  static constexpr uint32_t kAllRules = UINT32_MAX;
  class Counts;
  struct List;
  struct Published;
  struct Asked;
  struct Tables;
  struct alignas(64) Worker {
    // Null while the thread counts a decision, and while nothing is counted.
    std::atomic<Tables*> tables{nullptr};
  };

  void Hear(bool on);
  template <typename Function>
  void Count(uint32_t worker, Function add);
  std::vector<uint32_t> RulesAsked(base::Instant now);
  void SetLists(const std::vector<uint32_t>& rules, base::Instant now);
  std::unique_ptr<Tables> MakeTables() const;
  void TakeTables();
  void Publish(base::Instant now);

  const Options options_;
  const std::unique_ptr<Worker[]> workers_;
  RuleNames rules_;
  const uint32_t own_limits_;

  // ---- Of the thread that calls Tick
  std::vector<std::unique_ptr<List>> lists_;
  bool counting_ = false;  // the threads have tables

  std::mutex mutex_;
  std::vector<Asked> asked_;  // guarded by mutex_
};

}  // namespace headgate::observe
