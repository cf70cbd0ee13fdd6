// The permits that a request asks rules for that limit concurrency.
//
//   as usual             permits first, because they can be given back exactly; then buckets
//   the id may hold      an earlier request with the id has passed: this one takes nothing from any
//   a permit already     bucket. Otherwise buckets decide, and only if they allow, the permits are
//                        acquired
//
// In the usual order, a request that is sent twice at the same time would see the permits of its
// twin before the buckets have denied that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/status.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/response.h"
#include "headgate/permit/permit.h"

namespace headgate::limiter {

struct Task;

// Whether the request asks permits of any rule.
bool AsksPermits(const Task& task);

// Its memory is reused.
class RequestPermits {
 public:
  void Clear() {
    permits_.clear();
    of_descriptor_.clear();
  }
  bool empty() const { return of_descriptor_.empty(); }

  // ---- The steps. Each decision is false if the answers come later.

  // Decides all permits that the request needs, or with `released` releases those of this id.
  bool Ask(const Task& task, const permit::Id* released);
  // Which permits the id of a request that may repeat another holds already.
  void Read(const Task& task);
  // Buckets of a rule whose permit was refused are only peeked at, in an all-or-nothing domain
  // those of all rules. A request whose id holds a permit already was let through before, and takes
  // nothing from any bucket.
  void SpareBuckets(const Task& task) const;
  // The second part for a request that may repeat another: buckets have been asked, and if they
  // allow, the permits are acquired that its id does not hold.
  bool AcquireFound(const Task& task);
  // Costs go back if a permit is refused after all, or if a request with the same id has got it
  // meanwhile.
  bool GiveBackRefused(const Task& task);
  // Once for each request, when all is decided.
  void Observe(const Task& task) const;

  // The permit of a descriptor; null if there is none.
  const PermitEntry* Of(size_t descriptor) const {
    return descriptor < of_descriptor_.size() && of_descriptor_[descriptor]
               ? &permits_[*of_descriptor_[descriptor]]
               : nullptr;
  }
  bool Denies(size_t descriptor) const {
    const PermitEntry* const permit = Of(descriptor);
    return permit != nullptr && !permit->settled.decision.allowed;
  }

  void TellIn(const Task& task, Response& response) const;
  absl::Status TellReleased(const Task& task, Released& released) const;

 private:
  void Add(const Task& task, uint32_t descriptor, const permit::Id* released);
  bool Decide(const Task& task, std::span<PermitEntry> entries,
              absl::FunctionRef<size_t(size_t)> place);

  std::vector<PermitEntry> permits_;
  // By descriptor: its place in `permits_`. Descriptors with one key share it.
  std::vector<std::optional<uint32_t>> of_descriptor_;
  // Whether the request's id may hold permits of another request, and buckets decide about it as
  // well.
  bool may_repeat_ = false;
  // The permits that are acquired once the buckets allow, and their places in `permits_`.
  std::vector<PermitEntry> acquired_;
  std::vector<size_t> acquired_places_;
};

}  // namespace headgate::limiter
