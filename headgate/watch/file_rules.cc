#include "headgate/watch/file_rules.h"

#include <utility>

namespace headgate::watch {

FileRules::FileRules(std::vector<std::string> paths, Load load, OnRules on_rules, OnRefusal on_refusal,
                     const FileWatchOptions& options)
    : watch_(std::move(paths), options),
      load_(std::move(load)),
      on_rules_(std::move(on_rules)),
      on_refusal_(std::move(on_refusal)) {}

void FileRules::Step(base::Instant now) {
  std::optional<FilesRead> read = watch_.Step(now);
  if (!read.has_value()) return;
  const std::vector<rule::Problem> problems = Take(*read);
  problem_count_.store(problems.size(), std::memory_order_relaxed);
  if (problems.empty()) {
    loaded_at_ns_.store(now.ns, std::memory_order_relaxed);
    loaded_.fetch_add(1, std::memory_order_release);
  } else {
    refused_.fetch_add(1, std::memory_order_relaxed);
    on_refusal_({.problems = problems, .awaited = read->awaited});
  }
}

std::optional<base::Instant> FileRules::loaded_at() const {
  if (loaded_.load(std::memory_order_acquire) == 0) return std::nullopt;
  return base::Instant::FromNanos(loaded_at_ns_.load(std::memory_order_relaxed));
}

// Puts in force what was read, or answers why not.
std::vector<rule::Problem> FileRules::Take(FilesRead& read) {
  if (!read.problems.empty()) return std::move(read.problems);
  Loaded loaded = load_(read.files);
  if (!loaded.problems.empty()) return std::move(loaded.problems);
  const absl::Status status = on_rules_(std::move(loaded.rules));
  if (!status.ok()) return {rule::WholeFileProblem("", std::string(status.message()))};
  return {};
}

}  // namespace headgate::watch
