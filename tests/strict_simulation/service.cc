#include "tests/strict_simulation/service.h"

namespace headgate::strict_simulation {

using store::cas::Version;

namespace {

// The part of a counted version that ZooKeeper compares. The rest tells when the node was made.
constexpr uint64_t kCompared = 0xFFFF'FFFF;

}  // namespace

absl::StatusOr<Version> Value::Put(uint64_t put, const std::optional<std::string>& bytes,
                                   std::optional<Version> expected, base::Duration at) {
  const Change& present = states_.back();
  const uint64_t compared = random_versions_ ? ~uint64_t{0} : kCompared;
  const bool exists = present.bytes.has_value();
  bool fits = exists == expected.has_value();
  if (fits && exists) fits = (present.version.number & compared) == (expected->number & compared);
  if (!fits && mutant_ != Mutant::kVersionIgnored) return absl::AbortedError("another version");
  Change next{.at = at, .put = put, .bytes = bytes};
  if (bytes) next.version = NextVersion();
  states_.push_back(next);
  return next.version;
}

Version Value::NextVersion() {
  if (random_versions_) return {random_.Next()};
  const Change& present = states_.back();
  if (present.bytes) return {present.version.number + 1};
  return {uint64_t{++made_} << 32};
}

}  // namespace headgate::strict_simulation
