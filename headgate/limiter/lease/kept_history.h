// The changes of a rule's limit, kept together with the limits that they name, for a message that
// outlives the request that knew them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "headgate/store/limit_table.h"
#include "headgate/store/store.h"

namespace headgate::limiter::lease {

class KeptHistory {
 public:
  // The caller must pin the limits of `changes` until this returns. Allocates only if there are
  // any.
  static KeptHistory Of(std::span<const store::LimitChange> changes) {
    KeptHistory kept;
    if (changes.empty()) return kept;
    auto copy = std::make_shared<Copy>();
    for (const store::LimitChange& change : changes) {
      copy->changes.push_back(change);
      copy->limits.push_back(store::LimitHandle::Pin(*change.before));
    }
    kept.copy_ = std::move(copy);
    return kept;
  }

  // Valid as long as this object or a copy of it.
  std::span<const store::LimitChange> changes() const {
    return copy_ != nullptr ? std::span(copy_->changes) : std::span<const store::LimitChange>();
  }

 private:
  struct Copy {
    std::vector<store::LimitChange> changes;
    std::vector<store::LimitHandle> limits;
  };
  std::shared_ptr<const Copy> copy_;
};

}  // namespace headgate::limiter::lease
