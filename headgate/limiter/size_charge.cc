#include "headgate/limiter/size_charge.h"

#include <algorithm>

#include "headgate/algorithm/still_taken.h"

namespace headgate::limiter {

using algorithm::Cost;

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
