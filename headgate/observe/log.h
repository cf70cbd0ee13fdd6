// The log: one event per line, on stderr; log_line.h shows lines.
//
// An event that comes too often is held back, by its name; how many lines that cost is said when it
// may speak again, or by Tick, and counted. Thread-safe.
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
  // Different event names that are told apart; events are names in our own source, and few.
  static constexpr size_t kEventsMax = 512;

  // To stderr.
  Log(const LogOptions& options, const base::Clock& clock);
  // To wherever `sink` goes.
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

  const LogOptions options_;
  const base::Clock& clock_;
  const std::shared_ptr<spdlog::sinks::sink> sink_;
  const algorithm::Limit limit_;
  std::atomic<uint64_t> lines_dropped_{0};
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Event> events_;
};

}  // namespace headgate::observe
