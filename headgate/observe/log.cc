#include "headgate/observe/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <utility>

#include "headgate/algorithm/token_bucket.h"
#include "headgate/base/check.h"
#include "headgate/rule/quote.h"

namespace headgate::observe {
namespace {

// A field's text beyond this is left out: an error message quotes what was read.
constexpr size_t kValueBytesMax = 1'024;

algorithm::Limit LimitOf(const LogOptions& options) {
  auto limit = algorithm::Limit::Make({.requests = options.lines_per_event_second, .period = std::chrono::seconds(1)});
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

// As it is where nobody can misread it, else in quotes with escapes.
std::string ValueText(std::string_view text) {
  const bool cut = text.size() > kValueBytesMax;
  std::string_view shown = text.substr(0, kValueBytesMax);
  while (cut && !shown.empty() && (static_cast<unsigned char>(text[shown.size()]) & 0xc0) == 0x80) {
    shown.remove_suffix(1);
  }
  const bool plain = !cut && !shown.empty() && std::all_of(shown.begin(), shown.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
  });
  if (plain) return std::string(shown);
  std::string escaped;
  for (const char c : shown) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return fmt::format("\"{}{}\"", rule::Printable(escaped), cut ? "…" : "");
}

// Seconds with as many digits as it takes: 1.5s, 0.000000001s.
std::string DurationText(base::Duration d) {
  const bool negative = d.count() < 0;
  const uint64_t ns = negative ? ~static_cast<uint64_t>(d.count()) + 1 : static_cast<uint64_t>(d.count());
  std::string text = fmt::format("{}{}.{:09}", negative ? "-" : "", ns / 1'000'000'000, ns % 1'000'000'000);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "s";
}

std::string TimeText(base::WallTime time) {
  const int64_t ms = time.ns / 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(ms / 1'000)), ms % 1'000);
}

}  // namespace

std::string_view Name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  __builtin_unreachable();
}

std::optional<Level> LevelByName(std::string_view name) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (name == Name(level)) return level;
  }
  return std::nullopt;
}

Log::Log(const LogOptions& options, const base::Clock& clock)
    : Log(options, clock, std::make_shared<spdlog::sinks::stderr_sink_mt>()) {}

Log::Log(const LogOptions& options, const base::Clock& clock, std::shared_ptr<spdlog::sinks::sink> sink)
    : options_(options), clock_(clock), sink_(std::move(sink)), limit_(LimitOf(options)) {
  // The line is ours; spdlog adds its end.
  sink_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%v"));
}

Log::~Log() { sink_->flush(); }

void Log::Write(Level level, std::string_view name, std::initializer_list<Field> fields) {
  if (level < options_.level_min) return;
  const base::BootTime now = clock_.BootNow();
  const std::lock_guard lock(mutex_);
  auto found = events_.find(absl::string_view(name.data(), name.size()));
  if (found == events_.end()) {
    // Names are text of our own; should they be made of something that varies, they share one budget.
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
  return algorithm::DecideTokenBucket(limit_, event.bucket, 1, base::Instant::FromNanos(now.ns)).allowed;
}

void Log::SayHeldBack(std::string_view name, Event& event) {
  if (event.held_back == 0) return;
  Put(Level::kWarning, "log.suppressed", {{"event", name}, {"lines", event.held_back}});
  event.held_back = 0;
}

void Log::Put(Level level, std::string_view event, std::initializer_list<Field> fields) {
  std::string line = fmt::format("{} {} {}", TimeText(clock_.WallNow()), Name(level), event);
  for (const Field& field : fields) Append(line, field);
  try {
    sink_->log(spdlog::details::log_msg("", SpdlogLevel(level), line));
    sink_->flush();
  } catch (const std::exception&) {
    // stderr is closed or full: there is nowhere left to say so but the counter.
    lines_dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

void Log::Append(std::string& line, const Field& field) const {
  ((line += ' ') += field.name) += '=';
  struct Text {
    const LogOptions& options;
    std::string operator()(std::string_view value) const { return ValueText(value); }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(uint64_t value) const { return fmt::format("{}", value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(base::Duration value) const { return DurationText(value); }
    std::string operator()(ClientText value) const {
      if (options.client_keys == ClientKeys::kPlain) return ValueText(value.text);
      return fmt::format("#{:016x}", base::HashBytes(options.secret, base::KeyKind::kRaw, value.text).low);
    }
  };
  line += std::visit(Text{options_}, field.value);
}

}  // namespace headgate::observe
