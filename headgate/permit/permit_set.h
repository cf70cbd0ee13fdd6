// The permits of one key. Pure.
//
// At every instant at most `max` permits that have not ended are in the set, if all asks state the
// same `max`. If a lower one is stated, the present permits stay until they are released or end.
#pragma once

#include <span>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/permit/permit.h"

namespace headgate::permit {

struct Permit {
  Id id;
  base::Instant end;  // from then on the permit does not count

  bool operator==(const Permit&) const = default;
};

class PermitSet {
 public:
  PermitSet() = default;
  // `permits` in any order, each id once.
  explicit PermitSet(std::vector<Permit> permits);

  // Drops the permits that have ended, then does what `ask` says. Acquiring again with an id that
  // holds a permit renews the end of the permit, but never to an earlier time. So a holder can stay
  // for longer, and a repeated or late message does no harm.
  Answer Do(const Ask& ask, base::Instant now);

  // The number of permits that have not ended.
  uint32_t CountAt(base::Instant now) const;
  // In the order of their ends, including permits that have ended since the last call of Do.
  std::span<const Permit> permits() const { return permits_; }
  bool empty() const { return permits_.empty(); }
  // The end of the last permit: from then on no permit of the set counts. The zero instant if the
  // set is empty.
  base::Instant last_end() const { return empty() ? base::Instant{0} : permits_.back().end; }

 private:
  std::vector<Permit>::iterator Find(const Id& id);
  void Insert(const Permit& permit);
  uint32_t DropEnded(base::Instant now);

  // In the order of their ends. With one ttl for all, the newest comes last.
  std::vector<Permit> permits_;
};

}  // namespace headgate::permit
