#include "headgate/limiter/bucket_key.h"

namespace headgate::limiter {

base::Hash128 RuleBucketKey(const base::HashSecret& secret, std::string_view domain,
                            std::span<const rule::Entry> entries, const rule::Match& match,
                            uint8_t limit_index) {
  // The number of the limit, and one bit for each entry that a pattern of the rule replaces.
  uint64_t shape = limit_index;
  for (uint32_t i = 0; i < match.step_count; ++i) {
    if (match.steps[i].shared_pattern != nullptr) shape |= uint64_t{1} << (32 + i);
  }
  base::KeyHasher hasher(secret, base::KeyKind::kRule);
  hasher.Add(domain);
  hasher.Add({reinterpret_cast<const char*>(&shape), sizeof shape});
  for (uint32_t i = 0; i < match.step_count; ++i) {
    if (match.steps[i].shared_pattern != nullptr) {
      hasher.Add(*match.steps[i].shared_pattern);
    } else {
      hasher.Add(entries[i].key);
      hasher.Add(entries[i].value);
    }
  }
  return hasher.Finish();
}

base::Hash128 PermitsKey(const base::HashSecret& secret, std::string_view domain,
                         std::span<const rule::Entry> entries, const rule::Match& match) {
  // Behind the numbers of all limits and of those of roll-outs.
  constexpr uint8_t kPermits = 2 * rule::kLimitsPerRuleMax;
  return RuleBucketKey(secret, domain, entries, match, kPermits);
}

base::Hash128 OverrideBucketKey(const base::HashSecret& secret, std::string_view domain,
                                std::span<const rule::Entry> entries, rule::Unit unit) {
  const char unit_byte = static_cast<char>(unit);
  base::KeyHasher hasher(secret, base::KeyKind::kOverride);
  hasher.Add(domain);
  hasher.Add({&unit_byte, 1});
  for (const rule::Entry& entry : entries) {
    hasher.Add(entry.key);
    hasher.Add(entry.value);
  }
  return hasher.Finish();
}

base::Hash128 OnceBucketKey(const base::HashSecret& secret, std::string_view domain,
                            std::string_view id) {
  base::KeyHasher hasher(secret, base::KeyKind::kOnce);
  hasher.Add(domain);
  hasher.Add(id);
  return hasher.Finish();
}

}  // namespace headgate::limiter
