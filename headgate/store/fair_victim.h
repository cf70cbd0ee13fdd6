// Chooses what to evict when memory is full: from the class that holds most, the item whose loss is
// smallest.
//
// A class never loses anything to a class that holds as much or more. Each class thus gets an equal
// share or everything it wants, and unused shares go to the others (max-min fairness: Bertsekas and
// Gallager, "Data Networks", 6.5.2; pushing out of the longest queue: Wei, Coyle and Hsiao, 1991).
// A flood therefore evicts only its own items.
#pragma once

#include <cstdint>

#include "headgate/store/limit_class.h"

namespace headgate::store {

class FairVictim {
 public:
  // Makes room for an item of class `incoming`, which holds `held`. An item of the same class is
  // evicted only if its loss is below `own_loss`.
  FairVictim(const LimitClass& incoming, uint64_t held, uint64_t own_loss = ~uint64_t{0})
      : incoming_(&incoming), incoming_held_(held), own_loss_(own_loss) {}

  // Offers an item whose eviction would lose `loss`, of class `owner`, which holds `held`. Returns
  // true if this is the best candidate so far; the caller must remember it.
  bool Offer(const LimitClass& owner, uint64_t held, uint64_t loss) {
    // Use one number per class, even if other threads change it meanwhile.
    if (&owner == incoming_) {
      held = incoming_held_;
      if (loss >= own_loss_) return false;
    } else if (held <= incoming_held_) {
      return false;
    }
    if (&owner == best_) held = best_held_;
    if (best_ != nullptr && (held < best_held_ || (held == best_held_ && loss >= best_loss_)))
      return false;
    best_ = &owner;
    best_held_ = held;
    best_loss_ = loss;
    return true;
  }

 private:
  const LimitClass* const incoming_;
  const uint64_t incoming_held_;
  const uint64_t own_loss_;
  const LimitClass* best_ = nullptr;
  uint64_t best_held_ = 0;
  uint64_t best_loss_ = 0;
};

}  // namespace headgate::store
