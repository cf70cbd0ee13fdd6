// The rules of a running server: loaded at start, reloaded when their source changes, published to
// the limiter. Rules given as text do not change.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/limiter/limiter.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/store/limit_table.h"
#include "headgate/watch/open_sources.h"
#include "headgate/watch/rule_editor.h"
#include "headgate/watch/rule_follower.h"

namespace headgate::follow {

struct RulesOptions {
  std::vector<std::string> places{};  // as watch::OpenSources takes them
  watch::SourceSettings sources{};
  std::vector<std::string> one_liners{};  // rules as text; they do not change
  bool merge_domains = false;
  std::string audit_log{};  // empty: rule files are not changed
  // The limits of the buckets, to count those of a rule; null: the buckets are not in this process.
  const store::LimitTable* limits = nullptr;
  // A bucket holds at most this many hits of a sliding_window_log.
  uint64_t log_requests_max = ~uint64_t{0};
};

class Rules {
 public:
  // All arguments must outlive this object. It and its sources live on `loop`.
  Rules(RulesOptions options, limiter::Limiter& limiter, const base::DisciplinedClock& clock,
        net::EventLoop& loop, observe::Log& log);

  // Loads the rules for the first time, running the loop meanwhile, and returns all problems. If
  // there are none, the rules are in force. If a directory has no rule file yet, the rules are
  // awaited, and the limiter has no rules until one appears. If no source is configured, the empty
  // set of rules is in force.
  std::vector<rule::Problem> LoadFirst();

  // Reads all sources again, changed or not.
  void Reload();

  // Changes the documents that the rules come from. Call it after LoadFirst.
  rule::Editor& editor() { return *editor_; }

  // The rules in force, and a callback for each later change.
  const rule::RulesInForce& in_force() const { return in_force_; }
  void OnInForce(std::function<void(const rule::RulesInForce&)> on_in_force) {
    on_in_force_ = std::move(on_in_force);
  }
  std::string instances_error() const { return follower_->instances_error(); }

  // From any thread, after LoadFirst. The number of instances that follow the sources; 0 if no
  // source counts them.
  uint32_t instances() const { return follower_->instances(); }
  // From any thread.
  void Collect(observe::Sink& sink) const;

 private:
  watch::RuleFollower::Loaded Load(std::span<const rule::read::RuleFile> files) const;
  void WarnOfLargeLogs(const rule::RuleSet& rules) const;
  absl::Status Publish(const watch::RuleFollower::Loaded& loaded,
                       std::span<const rule::read::RuleFile> files);
  void OnRefusal(const watch::RuleFollower::Refusal& refusal);
  // Names each rule that differs, with its limits, up to a bound.
  void LogDifferences(const rule::RuleSet& before, const rule::RuleSet& after) const;
  void OnNews(const rule::Source::News& news);
  void MakeEditor();
  void CountLive(std::vector<rule::RuleDifference>& differences) const;
  void OnEdited(const rule::PastChange& change, const absl::Status& status);

  const RulesOptions options_;
  limiter::Limiter& limiter_;
  const base::DisciplinedClock& clock_;
  net::EventLoop& loop_;
  observe::Log& log_;
  std::unique_ptr<watch::RuleFollower> follower_;
  std::unique_ptr<watch::RuleEditor> editor_;
  std::vector<rule::Problem> first_problems_;
  bool loaded_first_ = false;
  rule::RulesInForce in_force_;
  std::function<void(const rule::RulesInForce&)> on_in_force_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<int64_t> loaded_at_ns_{0};
  std::atomic<uint64_t> edits_done_{0};
  std::atomic<uint64_t> edits_failed_{0};
};

}  // namespace headgate::follow
