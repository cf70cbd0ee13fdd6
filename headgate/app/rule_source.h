// The rules of a running server: loaded at start, followed while it runs.
//
// Files are watched. A change that loads is published whole; one that does not load changes nothing and is logged.
// Rules that were given as text do not change.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headgate/app/settings.h"
#include "headgate/base/clock.h"
#include "headgate/limiter/limiter.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/watch/file_rules.h"

namespace headgate::app {

class RuleSource {
 public:
  // All of them must outlive the source.
  RuleSource(const Settings& settings, limiter::Limiter& limiter, const base::DisciplinedClock& clock,
             observe::Log& log);

  // Loads the rules for the first time. Returns everything that is wrong with them. Without problems the rules are in
  // force, or, if a directory has no rule file yet, they are awaited: the limiter has no rules until then. If no source
  // is configured, the empty set of rules is in force.
  std::vector<rule::Problem> LoadFirst();

  // ---- While running; one thread.
  int fd() const { return watch_ ? watch_->fd() : -1; }
  // When Step should be called at latest; nothing where there is nothing to watch.
  std::optional<base::Instant> wake_at() const;
  void Step();
  // Reads all files again, changed or not.
  void Reload();

  // From any thread.
  void Collect(observe::Sink& sink) const;

 private:
  watch::FileRules::Loaded Load(std::span<const watch::FileText> files);
  absl::Status Publish(std::shared_ptr<const rule::RuleSet> rules);
  void OnRefusal(const watch::FileRules::Refusal& refusal);
  void StartWatching();

  const std::vector<std::string> paths_;
  const std::vector<std::string> one_liners_;
  const bool merge_domains_;
  limiter::Limiter& limiter_;
  const base::DisciplinedClock& clock_;
  observe::Log& log_;
  std::unique_ptr<watch::FileRules> watch_;
  std::vector<rule::Problem> first_problems_;
  bool loaded_first_ = false;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> problem_count_{0};
  std::atomic<int64_t> loaded_at_ns_{0};
  std::atomic<uint64_t> watch_failures_before_{0};  // of watches that Reload replaced
  std::atomic<uint64_t> watch_failures_{0};
  std::atomic<bool> polling_{false};
};

}  // namespace headgate::app
