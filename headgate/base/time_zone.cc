#include "headgate/base/time_zone.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <absl/time/time.h>

#include "headgate/base/text.h"

namespace headgate::base {

struct TimeZone::Table {
  std::string_view name;
  std::vector<Change> changes;
};

namespace {

constexpr int64_t kFirstS = 1'577'836'800;  // 2020-01-01
constexpr int64_t kLastS = 2'840'140'800;   // 2060-01-01

// Other names would be paths of files, or the machine's own zone.
bool IsZoneName(std::string_view name) {
  if (name.empty() || name.size() > TimeZone::kNameBytesMax || !IsLetter(name.front()))
    return false;
  if (name == "localtime" || name.starts_with("right/")) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) || c == '/' || c == '_' || c == '-' || c == '+';
  });
}

// The instant of a change. Its local time occurs twice or never, so Abseil is asked for the
// repeated or skipped time.
absl::Time InstantOf(const absl::TimeZone& zone, const absl::TimeZone::CivilTransition& change) {
  return zone.At(std::min(change.from, change.to)).trans;
}

// Nothing if there are too many.
std::optional<std::vector<TimeZone::Change>> ChangesOf(const absl::TimeZone& zone) {
  const auto offset_at = [&](absl::Time time) { return zone.At(time).offset; };
  absl::Time time = absl::FromUnixSeconds(kFirstS);
  std::vector<TimeZone::Change> changes{{kFirstS, offset_at(time)}};
  absl::TimeZone::CivilTransition next;
  while (zone.NextTransition(time, &next)) {
    time = InstantOf(zone, next);
    if (absl::ToUnixSeconds(time) >= kLastS) break;
    if (changes.size() == TimeZone::kChangesMost) return std::nullopt;
    if (offset_at(time) != changes.back().offset_s)
      changes.push_back({absl::ToUnixSeconds(time), offset_at(time)});
  }
  return changes;
}

}  // namespace

absl::StatusOr<TimeZone> TimeZone::Load(std::string_view name) {
  if (name == "UTC") return TimeZone();
  if (!IsZoneName(name)) {
    return absl::InvalidArgumentError("no name of a time zone");
  }
  static std::mutex mutex;
  static auto& tables = *new std::map<std::string, Table, std::less<>>;
  const std::lock_guard lock(mutex);
  if (const auto known = tables.find(name); known != tables.end()) return TimeZone(&known->second);
  absl::TimeZone zone;
  if (!absl::LoadTimeZone(std::string(name), &zone))
    return absl::NotFoundError("this system has no such time zone");
  auto changes = ChangesOf(zone);
  if (!changes || tables.size() == kZonesMost) {
    return absl::ResourceExhaustedError(changes ? "too many time zones are in use"
                                                : "its clocks change too often");
  }
  const auto added = tables.try_emplace(std::string(name)).first;
  added->second = {.name = added->first, .changes = *std::move(changes)};
  return TimeZone(&added->second);
}

std::string_view TimeZone::name() const { return is_utc() ? "UTC" : table_->name; }

std::span<const TimeZone::Change> TimeZone::changes() const {
  static constexpr Change kUtc{.at_s = kFirstS, .offset_s = 0};
  return is_utc() ? std::span(&kUtc, 1) : std::span(table_->changes);
}

}  // namespace headgate::base
