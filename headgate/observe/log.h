// The log: one event per line, on stderr. An event has a stable name and fields:
//
//   2026-11-20T09:30:00.000Z warning rules.refused file="edge rules.yaml" problems=2
//
// An event that comes too often is held back, by its name; how many lines that cost is said when it may speak again, or
// by Tick, and counted. Keys of clients appear as hashes unless plain text is asked for. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/clock.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"

namespace spdlog::sinks {
class sink;
}

namespace headgate::observe {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError };
std::string_view Name(Level level);
std::optional<Level> LevelByName(std::string_view name);

// A value that a client sent: a key, an address.
struct ClientText {
  std::string_view text;
};

struct Field {
  std::string_view name;
  std::variant<std::string_view, int64_t, uint64_t, bool, base::Duration, ClientText> value;
};

enum class ClientKeys : uint8_t { kHashed, kPlain };

struct LogOptions {
  // Lower it to kDebug to see more.
  Level level_min = Level::kInfo;
  // Lines of one event per second. Raise it while hunting something.
  uint64_t lines_per_event_second = 10;
  // kPlain shows what clients send.
  ClientKeys client_keys = ClientKeys::kHashed;
  // Makes the hashes of clients' keys; draw it from the operating system's random source.
  base::HashSecret secret{};
};

class Log {
 public:
  // Different event names that are told apart; events are names in our own source, and few.
  static constexpr size_t kEventsMax = 512;

  // To stderr.
  Log(const LogOptions& options, const base::Clock& clock);
  // To wherever `sink` goes.
  Log(const LogOptions& options, const base::Clock& clock, std::shared_ptr<spdlog::sinks::sink> sink);
  ~Log();

  void Debug(std::string_view event, std::initializer_list<Field> fields = {}) { Write(Level::kDebug, event, fields); }
  void Info(std::string_view event, std::initializer_list<Field> fields = {}) { Write(Level::kInfo, event, fields); }
  void Warning(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kWarning, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<Field> fields = {}) { Write(Level::kError, event, fields); }
  void Write(Level level, std::string_view event, std::initializer_list<Field> fields);

  // Says what was held back of events that have been silent since. Call it every second or so.
  void Tick();

  uint64_t lines_dropped() const { return lines_dropped_.load(std::memory_order_relaxed); }

 private:
  struct Event {
    algorithm::BucketState bucket;
    uint64_t held_back = 0;
  };

  bool MayWrite(Event& event, base::BootTime now);
  void SayHeldBack(std::string_view name, Event& event);
  void Put(Level level, std::string_view event, std::initializer_list<Field> fields);
  void Append(std::string& line, const Field& field) const;

  const LogOptions options_;
  const base::Clock& clock_;
  const std::shared_ptr<spdlog::sinks::sink> sink_;
  const algorithm::Limit limit_;
  std::atomic<uint64_t> lines_dropped_{0};
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Event> events_;
};

}  // namespace headgate::observe
