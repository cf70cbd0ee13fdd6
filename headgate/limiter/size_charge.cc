#include "headgate/limiter/size_charge.h"

#include <algorithm>

#include "headgate/algorithm/still_taken.h"
#include "headgate/base/random.h"
#include "headgate/base/wide.h"

namespace headgate::limiter {

using algorithm::Cost;

namespace {

// The part of `cost` that a bucket still lacks. It has refilled by whole units and a part of one.
// The part counts as a whole unit, or not at all, by a chance of its size: so what goes back is
// right in the mean, however many requests end early. To round it up each time would cost a whole
// unit for each.
Cost StillLacked(const algorithm::Limit& limit, Cost cost, base::Duration elapsed,
                 uint64_t chance_seed) {
  if (limit.denies_all()) return 0;
  const auto period = static_cast<uint64_t>(limit.spec().period.count());
  const base::uint128 refilled =
      base::WideMul(static_cast<uint64_t>(elapsed.count()), limit.spec().requests);
  const auto part = static_cast<uint64_t>(refilled % period);
  const bool counts = base::Random(chance_seed).Below(period) < part;
  const base::uint128 back = refilled / period + (counts ? 1 : 0);
  return back < cost ? cost - static_cast<Cost>(back) : 0;
}

}  // namespace

KeptDescriptor::KeptDescriptor(std::string_view domain, const rule::Descriptor& descriptor)
    : domain_(domain) {
  size_t bytes = 0;
  for (const rule::Entry& entry : descriptor.entries)
    bytes += entry.key.size() + entry.value.size();
  texts_.reserve(bytes);
  entries_.reserve(descriptor.entries.size());
  const auto kept = [&](std::string_view text) {
    const size_t begin = texts_.size();
    texts_.append(text);
    return std::string_view(texts_).substr(begin);
  };
  for (const rule::Entry& entry : descriptor.entries)
    entries_.push_back({.key = kept(entry.key), .value = kept(entry.value)});
}

SizeCharge::Correction SizeCharge::CorrectTo(uint64_t bytes, base::Instant now) {
  now = std::max(now, corrected_at_);
  const bool first_hit = take_.limit.spec().align == algorithm::Align::kFirstHit;
  if (first_hit) {
    still_taken_ = now < take_.window_end ? still_taken_ : 0;
  } else if (algorithm::IsBucket(take_.limit.algorithm())) {
    // The hash of the key is secret, so no client knows which times are to its advantage.
    still_taken_ = StillLacked(take_.limit, still_taken_, now - corrected_at_,
                               take_.key.low ^ static_cast<uint64_t>(now.ns));
  } else {
    still_taken_ = algorithm::StillTaken(take_.limit, still_taken_, corrected_at_, now);
  }
  corrected_at_ = now;
  const Cost wanted = take_.cost.UnitsOf(bytes);
  Correction correction;
  if (wanted > take_.taken) {
    correction.missing = wanted - take_.taken;
    still_taken_ += correction.missing;
  } else {
    correction.surplus = take_.taken - wanted;
    correction.returnable = std::min(correction.surplus, still_taken_);
    still_taken_ -= correction.returnable;
  }
  take_.taken = wanted;
  return correction;
}

}  // namespace headgate::limiter
