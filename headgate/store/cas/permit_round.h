// One round of questions about the permits of one key (permit/permit.h), like a round of requests
// about a bucket (bucket_round.h). Pure: the caller reads and writes the bytes (key_exchange.h).
//
// The bytes, all numbers big-endian:
//
//   version 1 · number of permits (4 bytes) · permits (24 bytes each: id, end in ns since 1970)
//
// Ends are on the wall clocks of the writers. An instance whose clock is ahead by δ drops permits δ
// too early; with a clock behind by δ, δ too late.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/permit/permit_set.h"

namespace headgate::store::cas {

void AppendPermits(const permit::PermitSet& permits, std::string& out);
// Returns nothing if the bytes are not permits, or more than kPermitsPerKeyMax. Stores are not
// trusted.
std::optional<permit::PermitSet> ParsePermits(std::string_view bytes);

class PermitRound {
 public:
  // `bytes`: empty if no permit is held. nullopt: there are bytes, but they are unreadable.
  PermitRound(std::optional<std::string_view> bytes, base::Instant now);

  permit::Answer Answer(const permit::Ask& ask);

  // Whether the permits have to be written before the answers count. Ended permits alone need no
  // write.
  bool has_changed() const { return has_changed_; }
  // Whether unreadable bytes were replaced.
  bool has_replaced_corrupt() const { return unreadable_ && has_changed_; }
  // The permits after all questions so far; empty if none is held.
  std::string bytes() const;
  // When the last one ends.
  base::Instant expires_at() const { return permits_.empty() ? now_ : permits_.last_end(); }

 private:
  const base::Instant now_;
  permit::PermitSet permits_;
  bool unreadable_ = false;
  bool has_changed_ = false;
};

}  // namespace headgate::store::cas
