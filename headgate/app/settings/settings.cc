#include "headgate/app/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "headgate/app/settings/table.h"
#include "headgate/rule/duration.h"
#include "headgate/rule/problem.h"

namespace headgate::app {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
// The setting of a listener (listen_address.h) that names a file.
constexpr std::string_view kRefusalFileIs = "refusal_file=";

absl::Status Bad(const Setting& setting, std::string_view value, std::string_view why) {
  const std::string_view shown =
      setting.secret == Secret::kNothing ? value : std::string_view("(hidden)");
  return absl::InvalidArgumentError(fmt::format("{} '{}': {}", setting.name, shown, why));
}

// "a|b|c" as "a, b or c".
std::string InWords(std::string_view choices) {
  std::string words(choices);
  const size_t last = words.rfind('|');
  words.replace(last, 1, " or ");
  for (size_t bar = words.find('|'); bar != std::string::npos; bar = words.find('|'))
    words.replace(bar, 1, ", ");
  return words;
}

bool IsChoice(std::string_view choices, std::string_view value) {
  while (true) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == value) return true;
    if (bar == std::string_view::npos) return false;
    choices.remove_prefix(bar + 1);
  }
}

// Accepts `true` and `false` too.
const std::string& NoOrYes(const std::string& value) {
  static const std::string no = "no", yes = "yes";
  return value == "true" ? yes : value == "false" ? no : value;
}

std::string ShowDuration(uint64_t ns) {
  return rule::FormatDuration(base::Duration(static_cast<int64_t>(ns)));
}

absl::StatusOr<uint64_t> ParseNumber(const Setting& setting, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < setting.min || value > setting.max) {
    return Bad(setting, text,
               fmt::format("write a whole number from {} to {}", setting.min, setting.max));
  }
  return value;
}

absl::StatusOr<base::Duration> ParseDurationSetting(const Setting& setting, std::string_view text) {
  const auto value = rule::ParseDuration(text);
  if (!value.ok()) return Bad(setting, text, "write a duration such as 500ms, 30s or 1m30s");
  const auto ns = static_cast<uint64_t>(value->count());
  if (ns < setting.min || ns > setting.max) {
    return Bad(setting, text,
               fmt::format("write a duration from {} to {}", ShowDuration(setting.min),
                           ShowDuration(setting.max)));
  }
  return *value;
}

// The URL without parts that may be a password: everything before the last '@', and everything
// behind '?', except for the number of a database.
std::string HideLogin(const std::string& url) {
  constexpr std::string_view kHidden = "(hidden)";
  const size_t scheme = url.find("://");
  const size_t at = url.rfind('@');
  std::string shown;
  if (at == std::string::npos) {
    shown = url;
  } else {
    if (scheme != std::string::npos && scheme < at) shown = url.substr(0, scheme + 3);
    shown.append(kHidden).append(url.substr(at));
  }
  const size_t query = shown.find('?');
  if (query == std::string::npos) return shown;
  constexpr std::string_view kDatabase = "?db=";
  const std::string_view rest = std::string_view(shown).substr(query);
  const bool is_database =
      rest.starts_with(kDatabase) &&
      rest.find_first_not_of("0123456789", kDatabase.size()) == std::string_view::npos;
  if (!is_database) shown.replace(query + 1, std::string::npos, kHidden);
  return shown;
}

// With the groups in the order in which they first appear.
std::vector<Setting> Gather(Command command) {
  std::vector<Setting> settings;
  std::vector<std::string_view> groups;
  const auto add = [&](std::span<const Setting> table) {
    for (const Setting& setting : table) {
      if ((static_cast<uint8_t>(setting.of) & static_cast<uint8_t>(command)) == 0) continue;
      settings.push_back(setting);
      groups.push_back(setting.group);
    }
  };
  if (command == Command::kServe) add(SettingsOfServe());
  add(SettingsOfProxy());
  if (command == Command::kSidecar) add(SettingsOfServe());
  std::ranges::stable_sort(settings, {}, [&](const Setting& setting) {
    return std::ranges::find(groups, setting.group) - groups.begin();
  });
  return settings;
}

}  // namespace

std::string_view NameOf(Command command) {
  return command == Command::kServe ? "serve" : "sidecar";
}

Settings DefaultsOf(Command command) {
  Settings settings;
  if (command == Command::kServe) return settings;
  settings.listen_proxy = std::exchange(settings.listen, {});
  settings.rate_limit_fields = "draft";
  settings.idle_timeout = std::chrono::minutes(5);
  return settings;
}

std::span<const Setting> AllSettings(Command command) {
  static const std::vector<Setting> serve = Gather(Command::kServe);
  static const std::vector<Setting> sidecar = Gather(Command::kSidecar);
  return command == Command::kServe ? serve : sidecar;
}

bool IsOfStore(const Setting& setting) { return setting.group == kStore; }
bool IsOfWatch(const Setting& setting) { return setting.name.starts_with("watch"); }
bool IsOfProxy(const Setting& setting) {
  const auto is_same = [&](const Setting& other) { return other.name == setting.name; };
  return setting.of == Command::kBoth && std::ranges::any_of(SettingsOfProxy(), is_same);
}

const Setting* FindSetting(std::string_view name, Command command) {
  const std::span<const Setting> all = AllSettings(command);
  const auto found = std::ranges::find(all, name, &Setting::name);
  return found == all.end() ? nullptr : &*found;
}

std::string_view NearestSetting(std::string_view name, Command command) {
  std::vector<std::string_view> words;
  for (const Setting& setting : AllSettings(command)) words.push_back(setting.name);
  return rule::NearestWord(name, words);
}

std::string FlagOf(const Setting& setting) {
  std::string flag = fmt::format("--{}", setting.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string EnvironmentNameOf(std::string_view setting) {
  std::string name = fmt::format("HEADGATE_{}", setting);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

std::string TypeOf(const Setting& setting) {
  if (!setting.choices.empty()) return std::string(setting.choices);
  static constexpr std::array<const char*, 4> kNames = {"text", "list", "number", "duration"};
  return kNames[setting.target.index()];
}

absl::Status SetValue(const Setting& setting, std::span<const std::string> values,
                      Settings& settings) {
  if (const auto* list = std::get_if<std::vector<std::string> Settings::*>(&setting.target)) {
    settings.** list = {values.begin(), values.end()};
    return absl::OkStatus();
  }
  if (values.size() != 1) {
    return absl::InvalidArgumentError(
        fmt::format("{} takes one value, {} are given", setting.name, values.size()));
  }
  const std::string& value = values.front();
  if (const auto* number = std::get_if<uint64_t Settings::*>(&setting.target)) {
    HEADGATE_ASSIGN_OR_RETURN(settings.**number, ParseNumber(setting, value));
  } else if (const auto* duration = std::get_if<base::Duration Settings::*>(&setting.target)) {
    HEADGATE_ASSIGN_OR_RETURN(settings.**duration, ParseDurationSetting(setting, value));
  } else {
    const std::string& meant = setting.choices == kNoOrYes ? NoOrYes(value) : value;
    if (!setting.choices.empty() && !IsChoice(setting.choices, meant)) {
      return Bad(setting, value, fmt::format("write {}", InWords(setting.choices)));
    }
    settings.*std::get<std::string Settings::*>(setting.target) = meant;
  }
  return absl::OkStatus();
}

std::vector<std::string> ShowValue(const Setting& setting, const Settings& settings) {
  if (const auto* list = std::get_if<std::vector<std::string> Settings::*>(&setting.target)) {
    std::vector<std::string> shown = settings.**list;
    if (setting.secret == Secret::kLogin)
      std::transform(shown.begin(), shown.end(), shown.begin(), HideLogin);
    return shown;
  }
  if (const auto* number = std::get_if<uint64_t Settings::*>(&setting.target)) {
    return {std::to_string(settings.**number)};
  }
  if (const auto* duration = std::get_if<base::Duration Settings::*>(&setting.target)) {
    return {rule::FormatDuration(settings.**duration)};
  }
  const std::string& text = settings.*std::get<std::string Settings::*>(setting.target);
  if (!HidesValue(setting, settings)) return {text};
  if (setting.secret == Secret::kAll) return {"(hidden)"};
  return {HideLogin(text)};
}

bool HidesValue(const Setting& setting, const Settings& settings) {
  if (setting.secret == Secret::kNothing) return false;
  if (const auto* list = std::get_if<std::vector<std::string> Settings::*>(&setting.target)) {
    return std::any_of((settings.**list).begin(), (settings.**list).end(),
                       [](const std::string& one) { return HideLogin(one) != one; });
  }
  const std::string& text = settings.*std::get<std::string Settings::*>(setting.target);
  return setting.secret == Secret::kAll ? !text.empty() : HideLogin(text) != text;
}

void ResolvePaths(Paths paths, const std::string& directory, std::vector<std::string>& values) {
  if (paths == Paths::kNone || directory.empty()) return;
  const auto resolve_at = [&](size_t at, std::string& value) {
    if (value.size() > at && value[at] != '/') value.insert(at, directory + '/');
  };
  for (std::string& value : values) {
    if (paths == Paths::kAll) {
      resolve_at(0, value);
      continue;
    }
    // From the end, so that earlier positions stay valid.
    const size_t query = value.find('?');
    const size_t file = query == value.npos ? query : value.find(kRefusalFileIs, query);
    if (file != value.npos) resolve_at(file + kRefusalFileIs.size(), value);
    if (value.starts_with(kUnixPrefix)) resolve_at(kUnixPrefix.size(), value);
  }
}

}  // namespace headgate::app
