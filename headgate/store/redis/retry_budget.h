// How many second attempts a client may make: a share of its calls, so that a store in trouble gets
// little more work than a healthy one. (Google's SRE book, chapter 21, recommends a tenth.)
#pragma once

#include <algorithm>
#include <cstdint>

namespace headgate::store::redis {

class RetryBudget {
 public:
  explicit RetryBudget(uint32_t percent) : percent_(percent) {}

  void OnCall() { credit_ = std::min(credit_ + percent_, kCreditMax); }
  // Whether a second attempt may be made. If so, the attempt is deducted.
  bool Take() {
    if (credit_ < kAttempt || percent_ == 0) return false;
    credit_ -= kAttempt;
    return true;
  }

 private:
  static constexpr uint64_t kAttempt = 100;
  // The maximum of the credit, which is also the credit at the start.
  static constexpr uint64_t kCreditMax = 10 * kAttempt;

  const uint32_t percent_;
  uint64_t credit_ = kCreditMax;
};

}  // namespace headgate::store::redis
