#include "headgate/app/configuration.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "headgate/net/endpoint.h"

namespace headgate::app {
namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;

std::string Place(const std::string& path, const YAML::Mark& mark) {
  return mark.is_null() ? path : fmt::format("{}:{}:{}", path, mark.line + 1, mark.column + 1);
}

std::string HintFor(std::string_view name) {
  const std::string_view nearest = NearestSetting(name);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return "`headgate serve --print-config` lists every setting";
}

// The scalars of a value, or a problem.
std::vector<std::string> ValuesOf(const Setting& setting, const YAML::Node& node, const std::string& path,
                                  std::vector<ConfigurationProblem>& problems) {
  const auto scalar = [](const YAML::Node& n) { return n.IsNull() ? std::string() : n.Scalar(); };
  if (node.IsScalar()) return {node.Scalar()};
  if (node.IsNull()) return setting.is_list() ? std::vector<std::string>() : std::vector<std::string>{""};
  std::vector<std::string> values;
  if (!node.IsSequence() || !setting.is_list()) {
    problems.push_back(
        {Place(path, node.Mark()),
         fmt::format("{} wants {}", setting.name, setting.is_list() ? "a value or a list of values" : "one value"),
         fmt::format("write `{}: …`", setting.name)});
    return values;
  }
  for (const YAML::Node& item : node) {
    if (!item.IsScalar() && !item.IsNull()) {
      problems.push_back({Place(path, item.Mark()), fmt::format("{}: an item is no plain value", setting.name), ""});
      return {};
    }
    values.push_back(scalar(item));
  }
  return values;
}

void ReadPair(const YAML::Node& key, const YAML::Node& value, const std::string& path, GivenValues& given,
              std::vector<ConfigurationProblem>& problems) {
  const std::string place = Place(path, key.Mark());
  if (!key.IsScalar()) {
    problems.push_back({place, "a key is no plain word", ""});
    return;
  }
  const Setting* setting = FindSetting(key.Scalar());
  if (setting == nullptr) {
    problems.push_back({place, fmt::format("unknown setting '{}'", key.Scalar()), HintFor(key.Scalar())});
    return;
  }
  if (given.contains(setting->name)) {
    problems.push_back({place, fmt::format("setting '{}' appears twice", setting->name), "keep one of them"});
    return;
  }
  const size_t problems_before = problems.size();
  std::vector<std::string> values = ValuesOf(*setting, value, path, problems);
  if (problems.size() != problems_before) return;
  given.emplace(std::string(setting->name), GivenValue{std::move(values), Place(path, value.Mark())});
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> values;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    std::string_view value = text.substr(0, end);
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ')) value.remove_suffix(1);
    if (!value.empty()) values.emplace_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values;
}

// In double quotes, as YAML reads them.
std::string Quoted(std::string_view value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ShowYaml(const Setting& setting, const std::vector<std::string>& values) {
  const bool text = setting.is_list() || TypeOf(setting) == "text";
  if (!setting.is_list()) return text ? Quoted(values.front()) : values.front();
  std::string list = "[";
  for (const std::string& value : values) list += (list.size() > 1 ? ", " : "") + Quoted(value);
  return list + "]";
}

}  // namespace

std::string_view Configuration::OriginOf(std::string_view name) const {
  const auto found = origins.find(name);
  return found == origins.end() ? std::string_view("default") : std::string_view(found->second);
}

GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems) {
  GivenValues given;
  if (text.size() > kFileBytesMax) {
    problems.push_back(
        {path, fmt::format("the file has {} bytes; at most {} are read", text.size(), kFileBytesMax), ""});
    return given;
  }
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsNull()) return given;
    if (!root.IsMap()) {
      problems.push_back({Place(path, root.Mark()), "the file is no mapping of settings to values",
                          "write lines such as `max_buckets: 1000000`"});
      return given;
    }
    for (const auto& pair : root) ReadPair(pair.first, pair.second, path, given, problems);
  } catch (const YAML::Exception& error) {
    problems.push_back({Place(path, error.mark), fmt::format("this is no YAML: {}", error.msg), ""});
  }
  return given;
}

GivenValues ReadEnvironment(const std::function<const char*(const char*)>& get) {
  GivenValues given;
  for (const Setting& setting : AllSettings()) {
    const std::string name = EnvironmentNameOf(setting);
    const char* value = get(name.c_str());
    if (value == nullptr) continue;
    given.emplace(std::string(setting.name),
                  GivenValue{setting.is_list() ? SplitList(value) : std::vector<std::string>{value}, name});
  }
  return given;
}

void Apply(const GivenValues& given, Configuration& configuration) {
  for (const auto& [name, value] : given) {
    const absl::Status set = SetValue(*FindSetting(name), value.values, configuration.settings);
    if (set.ok()) {
      configuration.origins[name] = value.origin;
    } else {
      configuration.problems.push_back({value.origin, std::string(set.message()), ""});
    }
  }
}

void CheckTogether(Configuration& configuration) {
  Settings& settings = configuration.settings;
  const auto problem = [&](std::string_view name, std::string what, std::string hint) {
    configuration.problems.push_back({std::string(configuration.OriginOf(name)), std::move(what), std::move(hint)});
  };
  if (settings.listen == std::vector<std::string>{"none"}) settings.listen.clear();
  const auto check_address = [&](std::string_view name, const std::string& text) {
    const auto endpoint = net::ParseEndpoint(text);
    if (!endpoint.ok()) problem(name, std::string(endpoint.status().message()), "");
  };
  for (const std::string& text : settings.listen) check_address("listen", text);
  for (const std::string& text : settings.listen_resp) check_address("listen_resp", text);
  for (const std::string& text : settings.listen_http) check_address("listen_http", text);
  if (settings.admin_listen == "none") settings.admin_listen.clear();
  if (!settings.admin_listen.empty()) check_address("admin_listen", settings.admin_listen);
  if (settings.listen.empty() && settings.listen_resp.empty() && settings.listen_http.empty()) {
    problem("listen", "there is no address to listen on", "set listen, listen_resp or listen_http");
  }
  if (!settings.credential.empty() && !settings.credential_file.empty()) {
    problem("credential_file", "credential and credential_file are both set", "keep one of them");
  }
}

std::string PrintConfiguration(const Configuration& configuration) {
  std::string text;
  std::string_view group;
  for (const Setting& setting : AllSettings()) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group);
    }
    const std::string line =
        fmt::format("{}: {}", setting.name, ShowYaml(setting, ShowValue(setting, configuration.settings)));
    text += fmt::format("{:<44}  # {}\n", line, configuration.OriginOf(setting.name));
  }
  return text;
}

std::string PrintConfigurationJson(const Configuration& configuration) {
  nlohmann::ordered_json settings = nlohmann::ordered_json::object();
  for (const Setting& setting : AllSettings()) {
    const std::vector<std::string> values = ShowValue(setting, configuration.settings);
    nlohmann::ordered_json value;
    if (setting.is_list()) {
      value = values;
    } else if (std::holds_alternative<uint64_t Settings::*>(setting.target)) {
      value = configuration.settings.*std::get<uint64_t Settings::*>(setting.target);
    } else {
      value = values.front();
    }
    settings[std::string(setting.name)] = {{"value", std::move(value)},
                                           {"from", std::string(configuration.OriginOf(setting.name))}};
  }
  return settings.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace headgate::app
