// Who gives way when memory is full: the class that holds most, and of what it holds what loses
// least.
//
// A class never loses anything to one that holds as much or more. Whatever classes want, each so
// gets an equal share or all that it wants, and what one leaves goes to the others (max-min
// fairness: Bertsekas and Gallager, "Data Networks", 6.5.2; pushing out of the longest queue: Wei,
// Coyle and Hsiao, 1991). A flood therefore pushes out itself.
#pragma once

#include <cstdint>

#include "headgate/store/limit_class.h"

namespace headgate::store {

class FairVictim {
 public:
  // For something of `incoming`, which holds `held`. Of its own class only what loses less than
  // `own_loss` gives way.
  FairVictim(const LimitClass& incoming, uint64_t held, uint64_t own_loss = ~uint64_t{0})
      : incoming_(&incoming), incoming_held_(held), own_loss_(own_loss) {}

  // Offers one that would lose `loss`, of a class that holds `held`. True: it gives way rather than
  // all before it, and the caller remembers it.
  bool Offer(const LimitClass& owner, uint64_t held, uint64_t loss) {
    // A class is judged by one number, though others change it meanwhile.
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
