#include "headgate/app/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headgate/net/endpoint.h"
#include "headgate/rule/document.h"

namespace headgate::app {
namespace {

std::string Place(const std::string& path, const rule::Mark& mark) {
  return fmt::format("{}:{}:{}", path, mark.line, mark.column);
}

std::string HintFor(std::string_view name) {
  const std::string_view nearest = NearestSetting(name);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return "`headgate serve --print-config` lists every setting";
}

// What is written, or "" for YAML's null.
std::string TextOf(const rule::DocumentNode& scalar) {
  const bool null = scalar.tag == rule::Tag::kNull ||
                    (scalar.tag == rule::Tag::kNone && (scalar.text == "~" || scalar.text == "null"));
  return null ? "" : std::string(scalar.text);
}

class FileReader {
 public:
  FileReader(const std::string& path, std::vector<ConfigurationProblem>& problems) : path_(path), problems_(problems) {}

  GivenValues Read(const rule::DocumentNode& root) {
    if (root.kind != rule::NodeKind::kMapping) {
      Problem(root, "the file is no mapping of settings to values", "write lines such as `max_buckets: 1000000`");
      return std::move(given_);
    }
    for (size_t i = 0; i + 1 < root.children.size(); i += 2) ReadPair(*root.children[i], *root.children[i + 1]);
    return std::move(given_);
  }

 private:
  void Problem(const rule::DocumentNode& node, std::string what, std::string hint) {
    problems_.push_back({Place(path_, node.mark), std::move(what), std::move(hint)});
  }

  void ReadPair(const rule::DocumentNode& key, const rule::DocumentNode& value) {
    const Setting* setting = key.kind == rule::NodeKind::kScalar ? FindSetting(key.text) : nullptr;
    if (setting == nullptr) return Problem(key, fmt::format("unknown setting '{}'", key.text), HintFor(key.text));
    if (given_.contains(setting->name)) {
      return Problem(key, fmt::format("setting '{}' appears twice", key.text), "keep one of them");
    }
    std::optional<std::vector<std::string>> values = ValuesOf(*setting, value);
    if (values) given_.emplace(key.text, GivenValue{*std::move(values), Place(path_, value.mark)});
  }

  std::optional<std::vector<std::string>> ValuesOf(const Setting& setting, const rule::DocumentNode& node) {
    if (node.kind == rule::NodeKind::kScalar) {
      const std::string text = TextOf(node);
      if (setting.is_list() && text.empty()) return std::vector<std::string>();
      return std::vector<std::string>{text};
    }
    if (node.kind != rule::NodeKind::kSequence || !setting.is_list()) {
      Problem(node,
              fmt::format("{} wants {}", setting.name, setting.is_list() ? "a value or a list of values" : "one value"),
              fmt::format("write `{}: …`", setting.name));
      return std::nullopt;
    }
    std::vector<std::string> values;
    for (const rule::DocumentNode* item : node.children) {
      if (item->kind != rule::NodeKind::kScalar) {
        Problem(*item, fmt::format("{}: an item is no plain value", setting.name), "put a text with ':' in quotes");
        return std::nullopt;
      }
      values.push_back(TextOf(*item));
    }
    return values;
  }

  const std::string& path_;
  std::vector<ConfigurationProblem>& problems_;
  GivenValues given_;
};

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

void Configuration::AddProblem(std::string_view setting, std::string_view what, std::string_view hint) {
  const std::string help = fmt::format("{}: {}", setting, FindSetting(setting)->help);
  problems.push_back(
      {std::string(OriginOf(setting)), fmt::format("{}: {}", setting, what), hint.empty() ? help : std::string(hint)});
}

GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems) {
  const rule::Document::Parsed parsed = rule::Document::Parse(text);
  if (parsed.error) {
    problems.push_back({Place(path, parsed.error->mark), parsed.error->message, "the file is YAML: `setting: value`"});
    return {};
  }
  if (parsed.document->root() == nullptr) return {};
  return FileReader(path, problems).Read(*parsed.document->root());
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
    const Setting& setting = *FindSetting(name);
    const absl::Status set = SetValue(setting, value.values, configuration.settings);
    if (set.ok()) {
      configuration.origins[name] = value.origin;
    } else {
      configuration.problems.push_back(
          {value.origin, std::string(set.message()), fmt::format("{}: {}", setting.name, setting.help)});
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
    if (!endpoint.ok()) problem(name, std::string(endpoint.status().message()), "for example 127.0.0.1:8080");
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

std::string DescribeForPage(const Setting& setting) {
  const std::string value = ShowYaml(setting, ShowValue(setting, Settings{}));
  return fmt::format("### `{}`\n{} {}\n\nType: {}. Default: `{}`. Flag: `{}`. Environment: `{}`.\n", setting.name,
                     setting.help, setting.advice, TypeOf(setting), value, FlagOf(setting), EnvironmentNameOf(setting));
}

}  // namespace headgate::app
