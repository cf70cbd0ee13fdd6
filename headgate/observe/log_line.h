// A line of the log. An event has a stable name and fields:
//
//   2026-11-20T09:30:00.000Z warning rules.refused file="edge rules.yaml" problems=2
//   {"time":"2026-11-20T09:30:00.000Z","level":"warning","event":"rules.refused","file":"edge
//   rules.yaml","problems":2}
//
// Neither form contains a control character, a line end or invalid UTF-8, whatever a value has.
// Values longer than 1,024 bytes are cut and end with "…".
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

// A value that a client sent: a key, an address.
struct ClientText {
  std::string_view text;
};

struct Field {
  std::string_view name;  // of letters, digits and '_'; not "time", "level" or "event"
  std::variant<std::string_view, int64_t, uint64_t, bool, base::Duration, ClientText> value;
};

enum class LogFormat : uint8_t { kText, kJson };
enum class ClientKeys : uint8_t { kHashed, kPlain };

struct LogOptions {
  // Lower it to kDebug to see more.
  Level level_min = Level::kInfo;
  // Lines of one event per second. Raise it while hunting something.
  uint64_t lines_per_event_second = 10;
  LogFormat format = LogFormat::kText;
  // kPlain shows what clients send.
  ClientKeys client_keys = ClientKeys::kHashed;
  // Makes the hashes of clients' keys; draw it from the operating system's random source.
  base::HashSecret secret{};
};

// The line, without its end.
std::string LogLine(const LogOptions& options, base::WallTime time, Level level,
                    std::string_view event, std::span<const Field> fields);

}  // namespace headgate::observe
