// The rules in force and the store of this process, shared by all threads. Each thread uses its own
// Checker (checker.h). Starts no thread, opens no socket, reads no clock.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/observer.h"
#include "headgate/permit/permit_table.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

struct PublishedRules;

class Limiter {
 public:
  // The store and the observers, if there are any, must outlive the limiter.
  Limiter(store::Store& store, Observers observers);
  ~Limiter();

  // Publishes a new set of rules; requests consumed under the old ones stay consumed. Each Checker
  // uses the new rules from its next call on. ResourceExhausted if the store cannot hold as many
  // different limits: the old rules stay in force.
  absl::Status OnRules(std::shared_ptr<const rule::RuleSet> rules, base::Instant now);

  // The rules last published; null before the first.
  std::shared_ptr<const rule::RuleSet> rules() const;

  store::Store& store() const { return store_; }
  // In passthrough, requests are decided and counted as always, and the answer to each is that it
  // may pass at once. Returns whether it was on. From any thread.
  bool SetPassthrough(bool on) { return passthrough_.exchange(on, std::memory_order_relaxed); }
  bool passthrough() const { return passthrough_.load(std::memory_order_relaxed); }
  // The permits of this process: all of them, or those given while a shared store is unreachable.
  permit::PermitTable& permits() { return permits_; }

 private:
  friend class Checker;
  std::shared_ptr<const PublishedRules> published() const;

  store::Store& store_;
  const Observers observers_;
  permit::PermitTable permits_;
  mutable std::mutex mutex_;
  std::shared_ptr<const PublishedRules> published_;
  std::atomic<uint64_t> generation_{0};  // counts publications
  std::atomic<bool> passthrough_{false};
};

}  // namespace headgate::limiter
