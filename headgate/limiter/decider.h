// Decides batches of requests whose buckets and limits are known. Rules, and requests that bring
// their own limits (CL.THROTTLE), are decided by the same decider of their event loop: by buckets
// of this process alone, or by those that all instances share (shared_decider.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "headgate/base/time.h"
#include "headgate/limiter/pending.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

// The inputs of a decision by a shared bucket besides its TakeRequest.
struct SharedTerms {
  rule::OnStoreFailure on_store_failure = rule::OnStoreFailure::kLocal;
  rule::Sharing sharing = rule::Sharing::kLeased;
  uint32_t fallback_share_ppm = 0;  // 0: one part of as many as there are instances
};

// A request of a batch, and its answer.
struct BatchEntry {
  store::TakeRequest request;
  SharedTerms terms{};
  Settled settled{};
};

class Decider {
 public:
  // Appends the name that the bucket of a request has in a shared store, by the request's position.
  using Namer = absl::FunctionRef<void(size_t index, std::string& name)>;

  explicit Decider(const SharedTerms& default_terms = {}) : default_terms_(default_terms) {}
  virtual ~Decider() = default;
  Decider(const Decider&) = delete;
  Decider& operator=(const Decider&) = delete;

  // Whether answers may come later. Then each call needs a Pending.
  virtual bool may_wait() const = 0;

  // Decides all requests of the batch, joined groups among them, in their order. False: the answers
  // come later; all of them will be in `pending`, behind what is there. One thread.
  virtual bool Decide(std::span<BatchEntry> batch, Namer name, Pending* pending,
                      base::Instant now) = 0;

  const SharedTerms& default_terms() const { return default_terms_; }
  SharedTerms TermsOf(const rule::Rule& rule) const {
    return {
        .on_store_failure = rule.on_store_failure.value_or(default_terms_.on_store_failure),
        .sharing = rule.sharing.value_or(default_terms_.sharing),
        .fallback_share_ppm = rule.fallback_share_ppm.value_or(default_terms_.fallback_share_ppm)};
  }

 private:
  const SharedTerms default_terms_;
};

}  // namespace headgate::limiter
