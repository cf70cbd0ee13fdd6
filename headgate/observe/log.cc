#include "headgate/observe/log.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <utility>

#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/check.h"

namespace headgate::observe {
namespace {

algorithm::Limit LimitOf(const LogOptions& options) {
  auto limit = algorithm::Limit::Make(
      {.requests = options.lines_per_event_second, .period = std::chrono::seconds(1)});
  HEADGATE_CHECK(limit.ok());
  return *limit;
}

spdlog::level::level_enum SpdlogLevel(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  __builtin_unreachable();
}

}  // namespace

Log::Log(const LogOptions& options, const base::Clock& clock)
    : Log(options, clock, std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

Log::Log(const LogOptions& options, const base::Clock& clock,
         std::shared_ptr<spdlog::sinks::sink> sink)
    : options_(options), clock_(clock), sink_(std::move(sink)), limit_(LimitOf(options)) {
  // The line is complete; spdlog adds only the line end.
  sink_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
}

Log::~Log() { sink_->flush(); }

void Log::Write(Level level, std::string_view name, std::initializer_list<Field> fields) {
  if (level < options_.level_min) return;
  const base::BootTime now = clock_.BootNow();
  const std::lock_guard lock(mutex_);
  auto found = events_.find(absl::string_view(name.data(), name.size()));
  if (found == events_.end()) {
    // Event names are constants. If they vary nevertheless, the excess names share one budget.
    const std::string key(events_.size() < kEventsMax ? name : "other");
    found = events_.try_emplace(key).first;
  }
  Event& event = found->second;
  if (!MayWrite(event, now)) {
    ++event.held_back;
    lines_dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  SayHeldBack(found->first, event);
  Put(level, name, fields);
}

void Log::Tick() {
  const base::BootTime now = clock_.BootNow();
  const std::lock_guard lock(mutex_);
  for (auto& [name, event] : events_) {
    if (event.held_back > 0 && MayWrite(event, now)) SayHeldBack(name, event);
  }
}

bool Log::MayWrite(Event& event, base::BootTime now) {
  return algorithm::DecideTokenBucket(limit_, event.bucket, 1, base::Instant::FromNanos(now.ns))
      .allowed;
}

void Log::SayHeldBack(std::string_view name, Event& event) {
  if (event.held_back == 0) return;
  Put(Level::kWarning, "log.suppressed", {{"name", name}, {"lines", event.held_back}});
  event.held_back = 0;
}

void Log::Put(Level level, std::string_view event, std::initializer_list<Field> fields) {
  const std::string line =
      LogLine(options_, clock_.WallNow(), level, event, {fields.begin(), fields.size()});
  try {
    sink_->log(spdlog::details::log_msg("", SpdlogLevel(level), line));
    sink_->flush();
  } catch (const std::exception&) {
    // stderr is closed or full, so only the counter can record the loss.
    lines_dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace headgate::observe
