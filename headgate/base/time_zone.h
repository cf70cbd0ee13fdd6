// Time zones of the IANA database: how far local time is ahead of UTC, and when that changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "headgate/base/status.h"

namespace headgate::base {

// UTC or a zone of the system's database, as a handle: cheap to copy and to compare. Zones with
// different names differ, also if their clocks agree. Thread-safe.
class TimeZone {
 public:
  struct Change {
    int64_t at_s;      // Unix time
    int32_t offset_s;  // from then on, local time minus UTC

    bool operator==(const Change&) const = default;
  };

  static constexpr size_t kNameBytesMax = 64;
  // The most zones of one process; the database has about 600 names. A zone is never unloaded.
  static constexpr size_t kZonesMost = 1000;
  // The most changes between 2020 and 2060.
  static constexpr size_t kChangesMost = 400;

  // Reads the zone from the system (/usr/share/zoneinfo, or the folder TZDIR) when a name is loaded
  // for the first time; a later update of the files needs a new process. InvalidArgument if no zone
  // can have this name, NotFound if the system has no such zone.
  static absl::StatusOr<TimeZone> Load(std::string_view name);

  TimeZone() = default;  // UTC

  bool is_utc() const { return table_ == nullptr; }
  // As it was loaded: "Europe/Berlin", or "UTC".
  std::string_view name() const;
  // The changes from 2020 to 2060, oldest first and at least one. The first one holds for all
  // earlier times, too, and the last one for all later ones.
  std::span<const Change> changes() const;

  bool operator==(const TimeZone&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, TimeZone zone) {
    return H::combine(std::move(h), zone.table_);
  }

 private:
  struct Table;
  explicit TimeZone(const Table* table) : table_(table) {}

  const Table* table_ = nullptr;  // null for UTC, else never destroyed
};

}  // namespace headgate::base
