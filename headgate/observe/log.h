// The log: one event per line, on stderr; see log_line.h for examples of lines.
//
// Events that come too often are suppressed, separately for each name. The number of suppressed
// lines is logged before the next line of that event, or by Tick, and counted. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/bucket.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/clock.h"
#include "headgate/observe/log_line.h"

namespace spdlog::sinks {
class sink;
}

namespace headgate::observe {

class Log {
 public:
  // The most event names that are limited separately. Names are constants in the source, and few.
  static constexpr size_t kEventsMax = 512;

  // Writes to stderr.
  Log(const LogOptions& options, const base::Clock& clock);
  // Writes to `sink`.
  Log(const LogOptions& options, const base::Clock& clock,
      std::shared_ptr<spdlog::sinks::sink> sink);
  ~Log();

  void Debug(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kDebug, event, fields);
  }
  void Info(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kInfo, event, fields);
  }
  void Warning(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kWarning, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<Field> fields = {}) {
    Write(Level::kError, event, fields);
  }
  void Write(Level level, std::string_view event, std::initializer_list<Field> fields);

  // Logs the number of suppressed lines for events that have been silent since. Call it about once
  // a second.
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

  const LogOptions options_;
  const base::Clock& clock_;
  const std::shared_ptr<spdlog::sinks::sink> sink_;
  const algorithm::Limit limit_;
  std::atomic<uint64_t> lines_dropped_{0};
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Event> events_;
};

}  // namespace headgate::observe
