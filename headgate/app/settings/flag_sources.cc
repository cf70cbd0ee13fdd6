#include "headgate/app/settings/flag_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "headgate/files/files.h"
#include "headgate/wire/json.h"

namespace headgate::app {
namespace {

using Strings = std::vector<std::string>;

constexpr size_t kSettingsBytesMax = size_t{4} << 20;

std::string NameOf(std::string_view flag) {
  std::string name(flag.substr(2));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Settings of `headgate serve` with the same name are the same kind of value.
SettingNames::Name DescribeFlag(const Flag& flag) {
  SettingNames::Name described{.name = NameOf(flag.name)};
  const Setting* const known = FindSetting(described.name);
  described.is_list =
      std::holds_alternative<Strings*>(flag.target) && (known == nullptr || known->is_list());
  if (known != nullptr) {
    described.paths = known->paths;
  } else if (described.name.ends_with("_file") || described.name == "mappings" ||
             described.name == "handover") {
    described.paths = Paths::kAll;
  }
  return described;
}

bool SetNumber(const std::string& text, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && !text.empty() && number <= kNumberMax;
}

bool SetSwitch(const std::string& text, bool& value) {
  value = text == "yes" || text == "true";
  return value || text == "no" || text == "false";
}

// Empty, or what is wrong with the values.
std::string SetTarget(const Flag& flag, const Strings& values) {
  if (const auto* list = std::get_if<Strings*>(&flag.target)) {
    **list = values;
    return "";
  }
  const std::string& value = values.front();
  if (const auto* is_set = std::get_if<bool*>(&flag.target))
    return SetSwitch(value, **is_set) ? "" : fmt::format("'{}' is neither yes nor no", value);
  if (const auto* number = std::get_if<uint64_t*>(&flag.target)) {
    return SetNumber(value, **number)
               ? ""
               : fmt::format("'{}' is not a whole number from 0 to {}", value, kNumberMax);
  }
  if (const auto* optional = std::get_if<std::optional<std::string>*>(&flag.target)) {
    **optional = value;
  } else {
    *std::get<std::string*>(flag.target) = value;
  }
  return "";
}

Strings ValuesOf(const Flag& flag) {
  if (const auto* list = std::get_if<Strings*>(&flag.target)) return **list;
  if (const auto* is_set = std::get_if<bool*>(&flag.target)) return {**is_set ? "yes" : "no"};
  if (const auto* number = std::get_if<uint64_t*>(&flag.target)) return {std::to_string(**number)};
  if (const auto* optional = std::get_if<std::optional<std::string>*>(&flag.target))
    return **optional ? Strings{***optional} : Strings{};
  return {*std::get<std::string*>(flag.target)};
}

// Whether the setting of this name holds a secret, and what may be shown of it.
bool HidesSecret(std::string_view name, Strings& values) {
  const Setting* const known = FindSetting(name);
  Settings settings;
  if (known == nullptr || values.empty() || !SetValue(*known, values, settings).ok() ||
      !HidesValue(*known, settings))
    return false;
  values = ShowValue(*known, settings);
  return true;
}

}  // namespace

void SourceFlags::AddTo(std::vector<Flag>& flags) {
  flags.push_back({"--config", &config});
  flags.push_back({"--print-config", &print_config});
  flags.push_back({"--json", &json});
}

bool FlagSources::Read(const ArgumentSpec& spec, const std::vector<std::string_view>& only_flags,
                       const SourceFlags& sources, const Environment& environment,
                       const Console& console) {
  for (const Flag& flag : spec.flags) {
    if (std::ranges::find(only_flags, flag.name) == only_flags.end())
      names_.push_back(DescribeFlag(flag));
  }
  const SettingNames names(names_, fmt::format("headgate {} --print-config", spec.command));
  std::vector<ConfigurationProblem> problems;
  const auto apply = [&](const GivenValues& given) {
    for (const Flag& flag : spec.flags) {
      const auto value = given.find(NameOf(flag.name));
      if (value == given.end()) continue;
      const std::string problem = SetTarget(flag, value->second.values);
      origins_[flag.name] = value->second.origin.place;
      if (!problem.empty())
        problems.push_back(
            {value->second.origin, fmt::format("{}: {}", value->first, problem), ""});
    }
  };
  const auto variable = environment.find("HEADGATE_CONFIG");
  const bool is_named = sources.config || variable != environment.end();
  if (is_named) {
    const std::string path = sources.config ? *sources.config : variable->second;
    const auto text = files::ReadFile(path, kSettingsBytesMax);
    if (text.ok()) {
      apply(ReadSettingsFile(*text, path, problems, names));
    } else {
      problems.push_back({{sources.config ? "--config" : "HEADGATE_CONFIG"},
                          std::string(text.status().message()),
                          "name a settings file that can be read, or none"});
    }
  }
  apply(ReadEnvironment(environment, problems, names));
  for (const auto& [where, what, hint] : problems)
    console.Error(where.place.empty() ? what : fmt::format("{}: {}", where.place, what), hint);
  return problems.empty();
}

void FlagSources::NoteGiven(const std::vector<std::string>& arguments) {
  for (const std::string_view argument : arguments) {
    const std::string flag(argument.substr(0, argument.find('=')));
    if (flag.starts_with("--")) origins_[flag] = flag;
  }
}

std::string_view FlagSources::PlaceOf(std::string_view flag) const {
  const auto found = origins_.find(flag);
  return found == origins_.end() || found->second == flag ? std::string_view() : found->second;
}

std::string FlagSources::Print(const ArgumentSpec& spec, bool json) const {
  using wire::Json;
  const std::string here = std::filesystem::current_path();
  std::string text;
  Json all = Json::Object();
  for (const Flag& flag : spec.flags) {
    const std::string name = NameOf(flag.name);
    const auto known = std::ranges::find_if(names_, [&](const auto& n) { return n.name == name; });
    if (known == names_.end()) continue;
    const auto origin = origins_.find(flag.name);
    const std::string from = origin == origins_.end() ? "default" : origin->second;
    Strings values = ValuesOf(flag);
    const bool hidden = HidesSecret(name, values);
    ResolvePaths(known->paths, here, values);
    const bool is_number = std::holds_alternative<uint64_t*>(flag.target);
    const bool is_switch = std::holds_alternative<bool*>(flag.target);
    const bool is_absent = !known->is_list && values.empty();
    if (json) {
      Json value;
      if (known->is_list) {
        value = Json::Array({values.begin(), values.end()});
      } else if (is_number) {
        value = **std::get_if<uint64_t*>(&flag.target);
      } else if (!is_absent) {
        value = values.front();
      }
      Json shown = Json::Object({{"value", hidden ? Json() : std::move(value)}, {"from", from}});
      if (hidden) shown.Add("hidden", values.front());
      all.Add(name, std::move(shown));
      continue;
    }
    const std::string line =
        is_absent ? fmt::format("# {}:", name)
                  : fmt::format("{}{}: {}", hidden ? "# " : "", name,
                                YamlOf(known->is_list, !is_number && !is_switch, values));
    text += fmt::format("{:<44}  # {}{}\n", line, from,
                        hidden ? ": hidden because it is a secret; set it again" : "");
  }
  return json ? all.IndentedText(2) + "\n" : text;
}

}  // namespace headgate::app
