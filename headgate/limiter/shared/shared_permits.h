// Permits of the shared store. While it cannot be asked, permits of this process, or the rule's
// policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/shared/instants.h"
#include "headgate/permit/permit_table.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::shared {

// For one thread. The permits of this process (`here`) may be shared with other threads.
class SharedPermits {
 public:
  // All must outlive it.
  SharedPermits(store::SharedStore& shared, permit::PermitTable& here, const Instants& instants,
                base::Duration timeout, std::function<void(Mode)> count);

  // As Decider::AskPermits. `source`: the decider of the holds. Permits are never leased: each is
  // one call to the store. If the store may have given one and its answer is lost, it is given
  // back, and the rule's policy decides.
  bool Ask(std::span<PermitEntry> batch, Decider::Namer name, Pending* pending,
           const std::shared_ptr<PermitSource>& source, base::Instant now);
  void GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now);
  void Renew(HeldPermit& held, base::Instant now);

 private:
  // A question until its answer comes.
  struct Question {
    base::Hash128 key;
    permit::Ask ask;
    SharedTerms terms;
    PermitWatch watch;
    bool is_named = false;
    PermitHold::Owner owner = PermitHold::Owner::kThisRequest;
    std::shared_ptr<SharedPermit> permit{};  // null unless one is acquired
    std::shared_ptr<Pending::State> state{};
    size_t index = 0;
  };

  void OnAnswer(const Question& question, const absl::StatusOr<permit::Answer>& answer);
  Settled WithoutStore(const Question& question, const absl::Status& why);
  void ReleaseAtStore(const std::string& name, const permit::Id& id, const PermitWatch& watch,
                      bool is_named);
  // The answer if a permit of this process was released.
  std::optional<Settled> ReleaseHere(const Question& question);
  // The part of `max` that this instance may use alone.
  uint32_t LocalPart(uint32_t max, const SharedTerms& terms) const;

  store::SharedStore& shared_;
  permit::PermitTable& here_;
  const Instants& instants_;
  const base::Duration timeout_;
  const std::function<void(Mode)> count_;
};

}  // namespace headgate::limiter::shared
