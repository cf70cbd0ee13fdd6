#include "headgate/observe/log_line.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/json.h"
#include "headgate/rule/quote.h"

namespace headgate::observe {
namespace {

// The longest text of a value. Error messages, for example, quote their input.
constexpr size_t kValueBytesMax = 1'024;

// At most kValueBytesMax bytes, cut between characters.
std::string_view Shown(std::string_view text) {
  std::string_view shown = text.substr(0, kValueBytesMax);
  while (shown.size() < text.size() && !shown.empty() &&
         (static_cast<unsigned char>(text[shown.size()]) & 0xc0) == 0x80) {
    shown.remove_suffix(1);
  }
  return shown;
}

// Writes the text unquoted if it is unambiguous, otherwise in quotes with escapes.
void AppendText(std::string_view text, std::string& line) {
  const std::string_view shown = Shown(text);
  const bool cut = shown.size() < text.size();
  const bool plain = !cut && !shown.empty() && std::all_of(shown.begin(), shown.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
  });
  if (plain) {
    line += shown;
    return;
  }
  std::string escaped;
  for (const char c : shown) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  ((line += '"') += rule::Printable(escaped)) += cut ? "…\"" : "\"";
}

void AppendJson(std::string_view text, std::string& line) {
  const std::string_view shown = Shown(text);
  base::AppendJsonString(shown.size() < text.size() ? std::string(shown) + "…" : shown, line);
}

// Seconds with as many digits as needed: 1.5s, 0.000000001s.
std::string DurationText(base::Duration d) {
  const bool negative = d.count() < 0;
  const uint64_t ns =
      negative ? ~static_cast<uint64_t>(d.count()) + 1 : static_cast<uint64_t>(d.count());
  std::string text =
      fmt::format("{}{}.{:09}", negative ? "-" : "", ns / 1'000'000'000, ns % 1'000'000'000);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + "s";
}

std::string TimeText(base::WallTime time) {
  const int64_t ms = time.ns / 1'000'000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(static_cast<std::time_t>(ms / 1'000)), ms % 1'000);
}

// Appends a field's value in the format of `options`.
struct ValueAppender {
  const LogOptions& options;
  std::string& line;

  bool json() const { return options.format == LogFormat::kJson; }
  void operator()(std::string_view value) const {
    json() ? AppendJson(value, line) : AppendText(value, line);
  }
  void operator()(int64_t value) const { base::AppendJsonNumber(value, line); }
  void operator()(uint64_t value) const { base::AppendJsonNumber(value, line); }
  void operator()(bool value) const { base::AppendJsonBool(value, line); }
  void operator()(base::Duration value) const { (*this)(std::string_view(DurationText(value))); }
  void operator()(ClientText value) const {
    if (options.client_keys == ClientKeys::kPlain) return (*this)(value.text);
    const base::Hash128 hash = base::HashBytes(options.secret, base::KeyKind::kRaw, value.text);
    (*this)(std::string_view(fmt::format("#{:016x}", hash.low)));
  }
};

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

std::string LogLine(const LogOptions& options, base::WallTime time, Level level,
                    std::string_view event, std::span<const Field> fields) {
  const bool json = options.format == LogFormat::kJson;
  std::string line;
  if (json) {
    line = fmt::format(R"({{"time":"{}","level":"{}","event":)", TimeText(time), Name(level));
    AppendJson(event, line);
  } else {
    line = fmt::format("{} {} {}", TimeText(time), Name(level), event);
  }
  for (const Field& field : fields) {
    if (json) {
      ((line += ",\"") += field.name) += "\":";
    } else {
      ((line += ' ') += field.name) += '=';
    }
    std::visit(ValueAppender{options, line}, field.value);
  }
  if (json) line += '}';
  return line;
}

}  // namespace headgate::observe
