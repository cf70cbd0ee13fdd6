// A line of the log. An event has a stable name and fields:
//
//   2026-11-20T09:30:00.000Z warning rules.refused file="edge rules.yaml" problems=2
//
//   {"time":"2026-11-20T09:30:00.000Z","level":"warning","event":"rules.refused",
//    "file":"edge rules.yaml","problems":2}          (on one line)
//
// Neither form contains a control character, a line end or invalid UTF-8, whatever the values
// contain. Values longer than 1,024 bytes are cut and end with "…".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "headgate/base/hash.h"
#include "headgate/base/time.h"

namespace headgate::observe {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError };
std::string_view Name(Level level);
std::optional<Level> LevelByName(std::string_view name);

// A value that a client sent, such as a key or an address.
struct ClientText {
  std::string_view text;
};

struct Field {
  std::string_view name;  // letters, digits and '_'; not "time", "level" or "event"
  std::variant<std::string_view, int64_t, uint64_t, bool, base::Duration, ClientText> value;
};

enum class LogFormat : uint8_t { kText, kJson };
enum class ClientKeys : uint8_t { kHashed, kPlain };

struct LogOptions {
  // Set it to kDebug to see more.
  Level level_min = Level::kInfo;
  // Lines per event name and second. Raise it for debugging.
  uint64_t lines_per_event_second = 10;
  LogFormat format = LogFormat::kText;
  // kPlain writes clients' texts unhashed.
  ClientKeys client_keys = ClientKeys::kHashed;
  // The secret for hashing clients' keys. Draw it from the operating system's random source.
  base::HashSecret secret{};
};

// The line, without its line end.
std::string LogLine(const LogOptions& options, base::WallTime time, Level level,
                    std::string_view event, std::span<const Field> fields);

}  // namespace headgate::observe
