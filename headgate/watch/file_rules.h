// Rules from files, while running: when the files change they are loaded, and the new rules published whole. What
// cannot be read or loaded changes nothing: the last good rules stay in force, and what is wrong is said. Files that
// are gone are such a problem too, never "no rules".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/rule/rule_set.h"
#include "headgate/watch/file_watch.h"

namespace headgate::watch {

class FileRules {
 public:
  // The rules of the files' text, or every problem.
  struct Loaded {
    std::shared_ptr<const rule::RuleSet> rules;
    std::vector<rule::Problem> problems;
  };
  using Load = std::function<Loaded(std::span<const FileText>)>;
  // Puts the rules in force. An error is a problem like any other.
  using OnRules = std::function<absl::Status(std::shared_ptr<const rule::RuleSet>)>;
  // Why one attempt put no rules in force. Those that are in force stay.
  struct Refusal {
    std::span<const rule::Problem> problems;  // all of them
    bool awaited = false;                     // nothing is wrong but that a directory has no rule file yet
  };
  using OnRefusal = std::function<void(const Refusal&)>;

  FileRules(std::vector<std::string> paths, Load load, OnRules on_rules, OnRefusal on_refusal,
            const FileWatchOptions& options = {});

  // As FileWatch's. The first Step loads at once. One thread; the callbacks run in it.
  int fd() const { return watch_.fd(); }
  void Step(base::Instant now);
  base::Instant wake_at() const { return watch_.wake_at(); }

  // ---- For metrics; any thread.
  uint64_t loaded() const { return loaded_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Of the last attempt.
  uint64_t problem_count() const { return problem_count_.load(std::memory_order_relaxed); }
  // When the rules in force were loaded; nothing before the first.
  std::optional<base::Instant> loaded_at() const;
  bool polling() const { return watch_.polling(); }
  uint64_t watch_failures() const { return watch_.failures(); }

 private:
  std::vector<rule::Problem> Take(FilesRead& read);

  FileWatch watch_;
  const Load load_;
  const OnRules on_rules_;
  const OnRefusal on_refusal_;
  std::atomic<uint64_t> loaded_{0};
  std::atomic<uint64_t> refused_{0};
  std::atomic<uint64_t> problem_count_{0};
  std::atomic<int64_t> loaded_at_ns_{0};
};

}  // namespace headgate::watch
