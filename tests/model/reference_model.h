// The algorithms, written as directly as possible from their definitions
// (docs/reference/algorithms.md): in fractions, with tokens that trickle in, hits that are
// remembered one by one, and a calendar that counts years. The model is slow and shares no code
// with the kernels, which keep other state in other numbers. The test is that they agree.
//
// If the definitions leave a choice, the model and the kernels decide:
//   - a limit of 0 requests denies every cost but 0, answers 0 remaining, and touches nothing;
//   - a bucket that comes under a limit of 0 holds nothing afterwards; windows and the log keep
//     their counts; a queue of 0 that was another algorithm's bucket is free when that would have
//     been full;
//   - a bucket that was never asked, or was reset, is as if never used under any limit;
//   - a change finds a bucket as if never used: it is forgotten, the latest time seen with it;
//   - a window's counter saturates at 2^32 − 1, and so does the sum of a log;
//   - a limit of 0 requests has no blocks in force, but keeps those that it is given;
//   - a charge lets a bucket owe at most 2^62 − 1 ns, 146 years;
//   - a queue's free_at is counted in 1/requests ns (of the limit it has now), rounded up when the
//     limit changes.
#pragma once

#include <cstdint>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "tests/model/rational.h"

namespace headgate::model {

// A bucket together with its limit.
class ReferenceBucket {
 public:
  // `spec` must be one that algorithm::Limit::Make accepts.
  explicit ReferenceBucket(const algorithm::LimitSpec& spec) { Become(spec); }

  algorithm::Decision Decide(algorithm::Cost cost, int64_t t);
  // Must not be called for a queue.
  algorithm::Decision Refund(algorithm::Cost cost, int64_t t);
  algorithm::Decision Undo(algorithm::Cost cost, int64_t taken_at, int64_t t);
  algorithm::Decision Charge(algorithm::Cost cost, int64_t t);
  void Reset();
  // Must not change another algorithm to a queue of 0 requests, which has no interval.
  void Change(const algorithm::LimitSpec& to, int64_t t);

  // Whether the bucket is full, or its window over, under every limit that it has had since it last
  // was so; each limit counts as it was when replaced.
  bool AsIfNeverUsed(int64_t t) const;

 private:
  struct LogHit {
    int64_t at;
    Int cost;
  };

  bool IsTokenBucket() const;
  bool IsQueue() const { return spec_.algorithm == algorithm::Algorithm::kLeakyBucketQueue; }
  bool IsBucket() const { return IsTokenBucket() || IsQueue(); }

  // Whether the bucket is full, or its window over, under the present limit.
  bool IsFull(int64_t t);
  // The same under all its limits.
  bool IsFullUnderAll(int64_t t) const;
  // Whether the latest block is in force, or decides how long the next one is.
  bool BlockMatters(int64_t t) const;
  void SayBlocked(algorithm::Decision& decision, int64_t t) const;
  // The length of the n-th block in a row, from 1.
  Int BlockLength(int n) const;
  // Takes over the numbers of `spec` and the values derived from them, but no state.
  void Adopt(const algorithm::LimitSpec& spec);
  // A bucket of `spec` that was never used.
  void Become(const algorithm::LimitSpec& spec);
  // Without blocks.
  void ChangeAlone(const algorithm::LimitSpec& to, int64_t t);
  // Advances the state to `t`. Returns t, or the latest time seen if that is later.
  int64_t Advance(int64_t t);
  Int Remaining(int64_t t) const;
  bool IsOverdrawn(int64_t t) const;
  // Whether any request is let in, whatever it costs.
  bool MayOverdraw(int64_t t) const { return spec_.overdraw && !IsOverdrawn(t); }

  // Without blocks.
  algorithm::Decision DecideAlone(algorithm::Cost cost, int64_t t);
  algorithm::Decision DecideTokens(Int cost, int64_t t);
  algorithm::Decision DecideQueue(Int cost, int64_t t);
  algorithm::Decision DecideFixedWindow(Int cost, int64_t t);
  algorithm::Decision DecideCounter(Int cost, int64_t t);
  algorithm::Decision DecideLog(Int cost, int64_t t);

  Rational Interval() const { return Rational(1) / rate_; }  // T
  Rational Estimate(int64_t t) const;
  Int LogCount() const;
  void AddHit(int64_t t, Int cost);
  // Rounded up to the resolution of a bucket's state, in fractions of a nanosecond.
  Rational OnGrid(const Rational& time) const;

  std::vector<ReferenceBucket>
      earlier_;             // this bucket under each earlier limit, as it was when replaced
  bool hides_use_ = false;  // one of them was of another kind, and its use is not in this state

  algorithm::LimitSpec spec_;
  Int requests_ = 0;    // N
  int64_t period_ = 0;  // P; 0 for the calendar alignments
  Int capacity_ = 0;    // B for the buckets, N for the windows
  Rational rate_;       // N/P, where N > 0

  bool asked_ = false;
  int64_t last_ = 0;          // the latest time seen
  Rational tokens_;           // token bucket and meter
  Rational free_at_;          // queue
  int64_t window_start_ = 0;  // of the window counted by `current_`
  int64_t window_end_ = 0;
  Int current_ = 0;   // windows
  Int previous_ = 0;  // sliding counter
  std::vector<LogHit> hits_;

  // The latest block.
  int blocks_in_a_row_ = 0;  // 0: there was none
  Int blocked_until_ = 0;
  bool used_since_ = false;
};

}  // namespace headgate::model
