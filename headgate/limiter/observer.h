// The events of the limiter for whatever counts them: one event per descriptor, or per batch of
// requests that bring their own limits. Called on the path of a decision, so an observer neither
// blocks nor allocates.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/base/check.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

enum class Outcome : uint8_t {
  kAllowed,
  kDenied,
  kShadowDenied,  // denied, but allowed to pass
  kNeverFits,
  kNoRule,
  kUnlimited,
  kUnavailable,  // the store is unreachable, and the rule refuses requests then
  kRepeated,     // passed before, with the same id
  kBlocked,      // denied, and the key stays denied until a block ends
};
inline constexpr int kOutcomeCount = 9;
std::string_view Name(Outcome outcome);

struct DecisionEvent {
  Outcome outcome;
  algorithm::Cost cost;
  const rule::Rule* rule;  // null if no rule applied
  uint32_t series;         // the observer's OnRule for it; 0 if no rule applied
  std::string_view domain;
  std::span<const rule::Entry> entries;  // for detailed_metric and value_to_metric
  const rule::Match* match;
};

// A decision by a limit that a request brought for a key of its own.
struct OwnKeyEvent {
  Outcome outcome;
  algorithm::Cost cost;
  std::string_view key;
};

// The answers of a rule and of its roll-out in shadow to one request.
struct RolloutEvent {
  uint32_t series;  // the result of OnRollout for the rule
  bool rule_allows;
  bool rollout_allows;
};

// An event of the permits of a rule that limits concurrency.
struct PermitEvent {
  enum class Kind : uint8_t {
    kTaken,      // by a request that gives it back when it ends
    kGivenBack,  // by such a request
    kEnded,      // before such a request gave it back: its ttl is too short, or its store lost it
    kAcquired,   // by id
    kReleased,   // by id
    kUnknown,    // nothing was held under the id that was released
    kRefused,
    kPeekedAt,  // by a request of a front that cannot give back a permit
    kExpired,   // permits that were found to have ended without being given back
  };
  uint32_t series;  // the result of OnConcurrency for the rule
  Kind kind;
  uint32_t count = 1;
};
inline constexpr size_t kPermitEventKinds = 9;

class Observer {
 public:
  virtual ~Observer() = default;
  // Whether it is told of decisions, and of own keys. Any thread may ask.
  bool hears_decisions() const { return hears_decisions_.load(std::memory_order_relaxed); }
  bool hears_own_keys() const { return hears_own_keys_.load(std::memory_order_relaxed); }

  // A rule is about to be published. The returned number comes with each of its decisions. Called
  // by one thread.
  virtual uint32_t OnRule(const rule::Rule& rule) = 0;
  // The same for its roll-out. The number comes with each event of it.
  virtual uint32_t OnRollout(const rule::Rule& /*rule*/) { return 0; }
  // The same for its limit of concurrency.
  virtual uint32_t OnConcurrency(const rule::Rule& /*rule*/) { return 0; }
  // Called by any thread; `worker` is the Checker's number.
  virtual void OnDecision(uint32_t worker, const DecisionEvent& event) = 0;
  // The same for decisions by limits that requests bring (CL.THROTTLE), `count` of one outcome.
  virtual void OnOwnLimits(uint32_t worker, Outcome outcome, uint64_t count) = 0;
  // Each of these with its key. Only some commands have this event, and only while it is heard.
  virtual void OnOwnKey(uint32_t /*worker*/, const OwnKeyEvent& /*event*/) {}
  virtual void OnShadowRollout(uint32_t /*worker*/, const RolloutEvent& /*event*/) {}
  // A request has brought a limit for its rule.
  virtual void OnGivenLimit(uint32_t /*worker*/, rule::Given /*given*/) {}
  virtual void OnPermits(uint32_t /*worker*/, const PermitEvent& /*event*/) {}

 protected:
  // For an observer that only sometimes needs them: meanwhile, a decision only reads a flag. A
  // decision that is being made may still be told, or not. Own keys are not heard at first.
  void HearDecisions(bool on) { hears_decisions_.store(on, std::memory_order_relaxed); }
  void HearOwnKeys(bool on) { hears_own_keys_.store(on, std::memory_order_relaxed); }

 private:
  std::atomic<bool> hears_decisions_{true};
  std::atomic<bool> hears_own_keys_{false};
};

// The observers of one limiter, in the order in which they are told. Each gives the rules numbers
// of its own.
class Observers {
 public:
  static constexpr size_t kMax = 3;
  // The number that each observer has given one rule. All are 0 if there is no rule.
  using Numbers = std::array<uint32_t, kMax>;

  Observers(std::initializer_list<Observer*> all) {
    for (Observer* const one : all) {
      if (one == nullptr) continue;
      HEADGATE_CHECK(count_ < kMax);
      all_[count_++] = one;
    }
  }
  Observers(Observer* one) : Observers({one}) {}  // null: nobody

  bool empty() const { return count_ == 0; }
  std::span<Observer* const> all() const { return {all_.data(), count_}; }
  // Calls `number` with each.
  template <typename Function>
  Numbers NumberEach(Function number) const {
    Numbers numbers{};
    for (size_t i = 0; i < count_; ++i) numbers[i] = number(*all_[i]);
    return numbers;
  }
  // Calls `tell` with each and its number.
  template <typename Function>
  void TellEach(const Numbers& numbers, Function tell) const {
    for (size_t i = 0; i < count_; ++i) tell(*all_[i], numbers[i]);
  }

 private:
  std::array<Observer*, kMax> all_{};
  size_t count_ = 0;
};

}  // namespace headgate::limiter
