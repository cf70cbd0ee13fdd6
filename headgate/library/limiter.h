// Rate limits in your own program, in a few lines:
//
//   auto limiter = headgate::Limiter::Make({.rules = {"api_key: 100/minute burst 20"}});
//   if (auto verdict = limiter->Check("api_key", key)) {
//     Serve();
//   } else {
//     RetryAfter(verdict.retry_after);
//   }
//
// A rule names a key; each value of the key has a bucket of its own. docs/guides/embedding.md has
// more, and docs/reference/rules.md all rules.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "headgate/base/clock.h"
#include "headgate/rule/descriptor.h"
#include "headgate/store/store.h"

namespace headgate {

// The text of a rule file, and a name for messages about it.
struct RuleText {
  std::string name;
  std::string text;
};

struct LimiterOptions {
  // Rules of one line each, in the domain "default": "api_key: 100/minute burst 20".
  std::vector<std::string> rules{};
  // Rule files, each with a domain of its own.
  std::vector<RuleText> files{};
  // The most buckets in memory; from 1 to kBucketsMax. Their table grows with them: it takes 57 to
  // 114 bytes for each while it grows, and 38 when it is full. Beyond max_buckets, the buckets that
  // lose least are forgotten.
  uint64_t max_buckets = 1u << 20;
  static constexpr uint64_t kBucketsMax = uint64_t{1} << 36;
  // The buckets that an earlier limiter saved; empty: none.
  std::string snapshot{};
  // Both must outlive the limiter. Null: the system's clock, and buckets in memory. With a store of
  // your own, `max_buckets` and `snapshot` have no meaning.
  const base::Clock* clock = nullptr;
  store::Store* store = nullptr;
};

// The answer to one request. True if the request may pass.
struct Verdict {
  bool allowed = true;
  // Whether a rule applied. Otherwise everything passes, and the numbers are 0.
  bool limited = false;
  uint64_t limit = 0;      // requests per window, or the burst of a bucket
  uint64_t remaining = 0;  // requests that would still pass now
  // Until the same request may pass; 0 if it may now, the largest duration if it never will.
  std::chrono::nanoseconds retry_after{0};
  std::chrono::nanoseconds reset_after{0};  // until the bucket is full again
  std::chrono::nanoseconds wait{0};         // queue rules: how long to hold the request

  explicit operator bool() const { return allowed; }
};

// Any number of threads may use one limiter at once. A limiter starts no thread, and opens no file
// and no socket.
class Limiter {
 public:
  // InvalidArgument with every problem of the rules, one per line. DataLoss or Unimplemented if the
  // snapshot cannot be read. ResourceExhausted if there is no memory for `max_buckets`.
  static absl::StatusOr<Limiter> Make(const LimiterOptions& options);
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  // Takes `cost` if the request may pass; otherwise takes nothing.
  Verdict Check(std::string_view key, std::string_view value, uint64_t cost = 1);
  // The same for a descriptor of several entries: Check({{"api_key", key}, {"path", path}}).
  // A request with more than 32 entries, with an empty key, or in a domain without a name is
  // refused.
  Verdict Check(std::span<const rule::Entry> entries, uint64_t cost = 1,
                std::string_view domain = rule::kDefaultDomain);
  Verdict Check(std::initializer_list<rule::Entry> entries, uint64_t cost = 1,
                std::string_view domain = rule::kDefaultDomain) {
    return Check(std::span(entries.begin(), entries.size()), cost, domain);
  }
  // Answers like Check, and takes nothing.
  Verdict Peek(std::span<const rule::Entry> entries, uint64_t cost = 1,
               std::string_view domain = rule::kDefaultDomain);
  Verdict Peek(std::initializer_list<rule::Entry> entries, uint64_t cost = 1,
               std::string_view domain = rule::kDefaultDomain) {
    return Peek(std::span(entries.begin(), entries.size()), cost, domain);
  }

  // Decides about several descriptors at once; one verdict for each. If the rule file of the domain
  // says `all_or_nothing: true`, nothing is taken unless all of them pass. InvalidArgument if there
  // are none, or more than 64, or a key is empty.
  absl::StatusOr<std::vector<Verdict>> CheckAll(std::span<const rule::Descriptor> descriptors,
                                                std::string_view domain = rule::kDefaultDomain);

  // Gives back the cost that a check took. NotFound if no rule applies; FailedPrecondition for a
  // queue.
  absl::Status Refund(std::span<const rule::Entry> entries, uint64_t cost = 1,
                      std::string_view domain = rule::kDefaultDomain);
  absl::Status Refund(std::initializer_list<rule::Entry> entries, uint64_t cost = 1,
                      std::string_view domain = rule::kDefaultDomain) {
    return Refund(std::span(entries.begin(), entries.size()), cost, domain);
  }
  // Makes the bucket full, and forgets its past. NotFound if no rule applies.
  absl::Status Reset(std::span<const rule::Entry> entries,
                     std::string_view domain = rule::kDefaultDomain);
  absl::Status Reset(std::initializer_list<rule::Entry> entries,
                     std::string_view domain = rule::kDefaultDomain) {
    return Reset(std::span(entries.begin(), entries.size()), domain);
  }

  // Replaces the rules. Costs that were taken under the old rules stay taken. InvalidArgument with
  // every problem, and then the old rules stay in force.
  absl::Status SetRules(const std::vector<std::string>& rules,
                        const std::vector<RuleText>& files = {});

  // Frees expired buckets, and follows corrections of the system's clock. Optional: call it every
  // few seconds from one thread.
  void Maintain();

  // The buckets as bytes, for the `snapshot` of a later limiter. Keep them private. If you have
  // given the limiter a store of your own, the result is empty.
  std::string Snapshot();

 private:
  struct State;
  explicit Limiter(std::unique_ptr<State> state);
  Verdict Ask(store::Operation operation, std::span<const rule::Entry> entries, uint64_t cost,
              std::string_view domain);

  std::unique_ptr<State> state_;
};

}  // namespace headgate
