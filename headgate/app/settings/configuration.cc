#include "headgate/app/settings/configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/files/files.h"
#include "headgate/http/known_hosts.h"
#include "headgate/http/token.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/read/document.h"
#include "headgate/wire/json.h"

extern char** environ;

namespace headgate::app {
namespace {

constexpr std::string_view kAddressForms =
    "for example 127.0.0.1:8080, :8080 (all interfaces), [::1]:8080 or unix:/run/headgate.sock";
constexpr std::string_view kVariablePrefix = "HEADGATE_";
// Variables that are not settings: Configure reads the first, tests and examples read the others.
constexpr std::array<std::string_view, 3> kOtherVariables{"HEADGATE_CONFIG", "HEADGATE_BINARY",
                                                          "HEADGATE_REDIS_SERVER"};

Origin PlaceIn(const std::string& path, const rule::Mark& mark) {
  return {.place = fmt::format("{}:{}:{}", path, mark.line, mark.column), .mark = mark};
}

std::string ListsAll(Command command) {
  return fmt::format("`headgate {} --print-config` lists every setting", NameOf(command));
}

std::string HintFor(std::string_view name, Command command) {
  const std::string_view nearest = NearestSetting(name, command);
  if (!nearest.empty()) return fmt::format("did you mean '{}'?", nearest);
  return ListsAll(command);
}

// The text of a scalar, or "" for YAML's null.
std::string TextOf(const rule::read::DocumentNode& scalar) {
  const bool null =
      scalar.tag == rule::read::Tag::kNull ||
      (scalar.tag == rule::read::Tag::kNone && (scalar.text == "~" || scalar.text == "null"));
  return null ? "" : std::string(scalar.text);
}

class FileReader {
 public:
  FileReader(const std::string& path, Command command, std::vector<ConfigurationProblem>& problems)
      : path_(path),
        directory_(std::filesystem::path(path).parent_path()),
        command_(command),
        problems_(problems) {}

  GivenValues Read(const rule::read::DocumentNode& root) {
    if (root.kind != rule::read::NodeKind::kMapping) {
      Problem(root, "the file is not a mapping of settings to values",
              "write lines such as `max_buckets: 1000000`");
      return std::move(given_);
    }
    for (size_t i = 0; i + 1 < root.children.size(); i += 2)
      ReadPair(*root.children[i], *root.children[i + 1]);
    return std::move(given_);
  }

 private:
  void Problem(const rule::read::DocumentNode& node, std::string what, std::string hint) {
    problems_.push_back({PlaceIn(path_, node.mark), std::move(what), std::move(hint)});
  }

  void ReadPair(const rule::read::DocumentNode& key, const rule::read::DocumentNode& value) {
    const Setting* const setting =
        key.kind == rule::read::NodeKind::kScalar ? FindSetting(key.text, command_) : nullptr;
    if (setting == nullptr) {
      return Problem(key, fmt::format("unknown setting '{}'", key.text),
                     HintFor(key.text, command_));
    }
    if (given_.contains(setting->name)) {
      return Problem(key, fmt::format("setting '{}' appears twice", key.text), "keep one of them");
    }
    std::optional<std::vector<std::string>> values = ValuesOf(*setting, value);
    if (!values) return;
    ResolvePaths(setting->paths, directory_, *values);
    Origin origin = PlaceIn(path_, value.mark);
    for (const rule::read::DocumentNode* item : value.children)
      origin.item_places.push_back(PlaceIn(path_, item->mark).place);
    given_.emplace(key.text, GivenValue{*std::move(values), std::move(origin)});
  }

  std::optional<std::vector<std::string>> ValuesOf(const Setting& setting,
                                                   const rule::read::DocumentNode& node) {
    if (node.kind == rule::read::NodeKind::kScalar) {
      const std::string text = TextOf(node);
      if (setting.is_list() && text.empty()) return std::vector<std::string>();
      return std::vector<std::string>{text};
    }
    if (node.kind != rule::read::NodeKind::kSequence || !setting.is_list()) {
      Problem(node,
              fmt::format("{} takes {}", setting.name,
                          setting.is_list() ? "a value or a list of values" : "one value"),
              fmt::format("write `{}: …`", setting.name));
      return std::nullopt;
    }
    std::vector<std::string> values;
    for (const rule::read::DocumentNode* item : node.children) {
      if (item->kind != rule::read::NodeKind::kScalar) {
        Problem(*item, fmt::format("{}: an item is not a plain value", setting.name),
                "put text that contains ':' in quotes");
        return std::nullopt;
      }
      values.push_back(TextOf(*item));
    }
    return values;
  }

  const std::string& path_;
  const std::string directory_;
  const Command command_;
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

// Whether Kubernetes sets this variable, as it does in every container of a namespace that has a
// service called "headgate…".
bool IsOfKubernetes(std::string_view variable) {
  const auto has = [&](std::string_view part) {
    return variable.find(part) != std::string_view::npos;
  };
  return has("_SERVICE_HOST") || has("_SERVICE_PORT") || has("_PORT_") ||
         variable.ends_with("_PORT");
}

std::string VariableHint(std::string_view variable, Command command) {
  std::string name(variable.substr(kVariablePrefix.size()));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name != "config" && rule::NearestWord(name, {"config"}) == "config")
    return "did you mean 'HEADGATE_CONFIG'?";
  const std::string_view nearest = NearestSetting(name, command);
  if (nearest.empty()) return ListsAll(command);
  return fmt::format("did you mean '{}'?", EnvironmentNameOf(nearest));
}

// In double quotes, as YAML reads them.
std::string Quoted(std::string_view value) { return wire::Json(value).Text(); }

std::string ShowYaml(const Setting& setting, const std::vector<std::string>& values) {
  if (!setting.is_list())
    return TypeOf(setting) == "text" ? Quoted(values.front()) : values.front();
  std::string list = "[";
  for (const std::string& value : values) list += (list.size() > 1 ? ", " : "") + Quoted(value);
  return list + "]";
}

// "a certificate has no key", "2 certificates have no key"
std::string Lacking(size_t count, std::string_view what, std::string_view lacks) {
  return count == 1 ? fmt::format("a {} has no {}", what, lacks)
                    : fmt::format("{} {}s have no {}", count, what, lacks);
}

}  // namespace

std::string_view Configuration::OriginOf(std::string_view name) const {
  const auto found = origins.find(name);
  return found == origins.end() ? std::string_view("default")
                                : std::string_view(found->second.place);
}

std::string_view Configuration::OriginOfItem(std::string_view name, size_t index) const {
  const auto found = origins.find(name);
  const bool known = found != origins.end() && index < found->second.item_places.size();
  return known ? std::string_view(found->second.item_places[index]) : OriginOf(name);
}

void Configuration::AddProblem(std::string_view setting, std::string_view what,
                               std::string_view hint) {
  const auto found = origins.find(setting);
  const Origin origin = found == origins.end() ? Origin{} : found->second;
  // The name of a flag or a variable already contains the setting's name.
  const bool named = !origin.place.empty() && origin.mark.line == 0;
  const std::string text = named ? std::string(what) : fmt::format("{}: {}", setting, what);
  // The fronts and the proxy may read the same file.
  const auto is_same = [&](const ConfigurationProblem& known) {
    return known.what == text && known.where.place == origin.place;
  };
  if (std::ranges::any_of(problems, is_same)) return;
  problems.push_back({origin, text,
                      hint.empty()
                          ? fmt::format("{}: {}", setting, FindSetting(setting, command)->help)
                          : std::string(hint)});
}

void Configuration::Refuse(std::string_view what, std::string_view hint) {
  const std::string_view flag = what.substr(0, what.find_first_of(" :"));
  Origin origin;
  for (const auto& [name, where] : origins) {
    if (where.place != flag && FlagOf(*FindSetting(name, command)) == flag) origin = where;
  }
  problems.push_back({std::move(origin), std::string(what), std::string(hint)});
}

void Configuration::ReadSecret(std::string_view setting, const std::string& path,
                               std::string& secret) {
  if (path.empty()) return;
  auto read = files::ReadFirstLine(path);
  if (!read.ok()) AddProblem(setting, read.status());
  secret = std::move(read).value_or("(not read)");
}

void Configuration::ReadSecret(std::string_view setting, const std::string& path,
                               base::Secret& secret) {
  if (path.empty()) return;
  struct Last {
    std::mutex mutex;
    std::string text;
  };
  const auto last = std::make_shared<Last>();
  ReadSecret(setting, path, last->text);
  secret = base::Secret([path, last] {
    // A pipe would block the reader.
    std::error_code error;
    auto read = std::filesystem::is_regular_file(path, error)
                    ? files::ReadFirstLine(path)
                    : absl::UnavailableError("it is not a file");
    const std::lock_guard lock(last->mutex);
    if (read.ok()) last->text = *std::move(read);
    return last->text;
  });
}

Environment ProcessEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = std::min(text.find('='), text.size());
    environment.emplace(text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
  }
  return environment;
}

GivenValues ReadSettingsFile(std::string_view text, const std::string& path,
                             std::vector<ConfigurationProblem>& problems, Command command) {
  const rule::read::Document::Parsed parsed = rule::read::Document::Parse(text);
  if (parsed.error) {
    problems.push_back(
        {PlaceIn(path, parsed.error->mark), parsed.error->message, parsed.error->hint});
    return {};
  }
  if (parsed.document->root() == nullptr) return {};
  return FileReader(path, command, problems).Read(*parsed.document->root());
}

GivenValues ReadEnvironment(const Environment& environment,
                            std::vector<ConfigurationProblem>& problems, Command command) {
  std::map<std::string, const Setting*, std::less<>> by_variable;
  for (const Setting& setting : AllSettings(command))
    by_variable.emplace(EnvironmentNameOf(setting.name), &setting);
  GivenValues given;
  for (auto entry = environment.lower_bound(kVariablePrefix);
       entry != environment.end() && entry->first.starts_with(kVariablePrefix); ++entry) {
    const auto& [name, value] = *entry;
    if (const auto found = by_variable.find(name); found != by_variable.end()) {
      const Setting& setting = *found->second;
      given.emplace(setting.name, GivenValue{setting.is_list() ? SplitList(value)
                                                               : std::vector<std::string>{value},
                                             {name}});
    } else if (std::find(kOtherVariables.begin(), kOtherVariables.end(), name) ==
                   kOtherVariables.end() &&
               !IsOfKubernetes(name)) {
      problems.push_back(
          {{name}, "this variable does not name a setting", VariableHint(name, command)});
    }
  }
  return given;
}

void Apply(const GivenValues& given, Configuration& configuration) {
  for (const auto& [name, value] : given) {
    const Setting& setting = *FindSetting(name, configuration.command);
    const absl::Status set = SetValue(setting, value.values, configuration.settings);
    if (set.ok()) {
      configuration.origins[name] = value.origin;
    } else {
      configuration.problems.push_back({value.origin, std::string(set.message()),
                                        fmt::format("{}: {}", setting.name, setting.help)});
    }
  }
}

void CheckTls(Configuration& configuration) {
  const Settings& settings = configuration.settings;
  const size_t certificates = settings.tls_certificate_file.size();
  const size_t keys = settings.tls_key_file.size();
  if (certificates != keys) {
    configuration.AddProblem("tls_key_file",
                             certificates > keys
                                 ? Lacking(certificates - keys, "certificate", "key")
                                 : Lacking(keys - certificates, "key", "certificate"),
                             "give each tls_certificate_file its tls_key_file, in the same order");
  }
  if (!settings.tls_client_ca_file.empty() && settings.tls_certificate_file.empty()) {
    configuration.AddProblem("tls_client_ca_file",
                             "only a server with a certificate can ask for it",
                             "set tls_certificate_file and tls_key_file");
  }
  if (!settings.tls_client_name.empty() && settings.tls_client_ca_file.empty()) {
    configuration.AddProblem("tls_client_name", "nobody vouches for the names of clients",
                             "set tls_client_ca_file");
  }
}

// Whether only one of them can be listened on.
bool TakeOnePort(const net::Endpoint& a, const net::Endpoint& b) {
  using Kind = net::Endpoint::Kind;
  if (a.is_unix() || b.is_unix()) return a == b;
  if (a.port != b.port || a.port == 0) return false;
  const bool any = a.kind == Kind::kAllInterfaces || b.kind == Kind::kAllInterfaces;
  const bool localhost =
      (a.kind == Kind::kLocalhost && b.loopback()) || (b.kind == Kind::kLocalhost && a.loopback());
  return any || localhost || a == b;
}

void CheckTogether(Configuration& configuration) {
  Settings& settings = configuration.settings;
  const auto given = [&](std::string_view name) {
    return configuration.origins.find(name) != configuration.origins.end();
  };
  // The default addresses apply only if no address is set: setting the address of one protocol
  // opens only that address.
  if (!settings.listen_resp.empty() || !settings.listen_http.empty()) {
    for (const std::string_view name : {"listen", "admin_listen"}) {
      if (given(name)) continue;
      name == "listen" ? settings.listen.clear() : settings.admin_listen.clear();
      configuration.origins[std::string(name)] = {"off: only listen_resp or listen_http is set"};
    }
  }
  for (std::vector<std::string>* const addresses : {&settings.listen, &settings.listen_proxy}) {
    if (*addresses == std::vector<std::string>{"none"}) addresses->clear();
  }
  if (settings.admin_listen == "none") settings.admin_listen.clear();
  bool any_tls = false;
  std::vector<std::pair<std::string_view, net::Endpoint>> taken;
  const auto check_address = [&](std::string_view name, const std::string& text) {
    const auto address = ParseListenAddress(text);
    if (!address.ok()) return configuration.AddProblem(name, address.status(), kAddressForms);
    for (const auto& [other, endpoint] : taken) {
      if (!TakeOnePort(endpoint, address->endpoint)) continue;
      configuration.AddProblem(
          name, fmt::format("'{}' is taken by {} ({})", text, other, endpoint.ToString()),
          given(other) ? "give each a port of its own"
                       : "give each a port of its own; none turns the "
                         "default address off");
    }
    taken.emplace_back(name, address->endpoint);
    any_tls = any_tls || address->tls;
    if (address->tls && settings.tls_certificate_file.empty()) {
      configuration.AddProblem(name, fmt::format("'{}' needs a certificate", text),
                               "set tls_certificate_file and tls_key_file");
    }
  };
  CheckTls(configuration);
  if (!settings.admin_listen.empty()) check_address("admin_listen", settings.admin_listen);
  // The default gives way with a warning (Process::ListenOnAll).
  if (!given("admin_listen")) taken.clear();
  for (const std::string& text : settings.listen) check_address("listen", text);
  for (const std::string& text : settings.listen_resp) check_address("listen_resp", text);
  for (const std::string& text : settings.listen_http) check_address("listen_http", text);
  for (const std::string& text : settings.listen_spoe) check_address("listen_spoe", text);
  const bool is_sidecar = configuration.command == Command::kSidecar;
  for (const std::string& text : settings.listen_proxy)
    check_address(is_sidecar ? "listen" : "listen_proxy", text);
  const bool has_auth = !settings.auth.empty() || !settings.auth_header.empty();
  if (!settings.listen_spoe.empty() && !has_auth) {
    configuration.AddProblem("listen_spoe", "there is nothing to ask here without mappings",
                             "set auth or auth_header");
  }
  if (!settings.auth.empty() && !settings.auth_header.empty()) {
    configuration.AddProblem("auth_header", "auth and auth_header exclude each other",
                             "add a mapping of this header to the file of auth");
  }
  if (!settings.auth_header.empty() && !http::IsToken(settings.auth_header)) {
    configuration.AddProblem("auth_header", "this is not the name of a header", "X-API-Key");
  }
  if (!any_tls && !settings.tls_certificate_file.empty()) {
    configuration.AddProblem("tls_certificate_file", "no address speaks TLS",
                             "write tls: before an address, as in listen: tls:127.0.0.1:8443");
  }
  if (settings.listen.empty() && settings.listen_resp.empty() && settings.listen_http.empty() &&
      settings.listen_proxy.empty()) {
    configuration.AddProblem(
        "listen", "there is no address to listen on",
        is_sidecar ? "set listen" : "set listen, listen_resp, listen_http or listen_proxy");
  }
  if (!is_sidecar && settings.listen_proxy.empty()) {
    if (const std::string unused = ChangedSettings(configuration, IsOfProxy); !unused.empty()) {
      configuration.AddProblem(
          unused.substr(0, unused.find(',')), "there is no address of a proxy",
          "set listen_proxy, or run `headgate sidecar`; without them, remove it");
    }
  }
  if (!settings.credential.empty() && !settings.credential_file.empty()) {
    configuration.AddProblem("credential_file", "credential is set too", "remove one of them");
  }
  for (const std::string& name : settings.known_host) {
    if (const absl::Status status = http::KnownHosts::Check(name); !status.ok()) {
      configuration.AddProblem("known_host", status,
                               "write a name, *.example.com for all names below it, or * for any");
    }
  }
}

std::string PrintConfiguration(const Configuration& configuration) {
  const std::string here = std::filesystem::current_path();
  std::string text;
  std::string_view group;
  for (const Setting& setting : AllSettings(configuration.command)) {
    if (setting.group != group) {
      group = setting.group;
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", group);
    }
    std::vector<std::string> values = ShowValue(setting, configuration.settings);
    ResolvePaths(setting.paths, here, values);
    const bool hidden = HidesValue(setting, configuration.settings);
    const std::string line =
        fmt::format("{}{}: {}", hidden ? "# " : "", setting.name, ShowYaml(setting, values));
    text += fmt::format("{:<44}  # {}{}\n", line, configuration.OriginOf(setting.name),
                        hidden ? ": hidden because it is a secret; set it again" : "");
  }
  return text;
}

std::string PrintConfigurationJson(const Configuration& configuration) {
  using wire::Json;
  Json settings = Json::Object();
  for (const Setting& setting : AllSettings(configuration.command)) {
    const std::vector<std::string> values = ShowValue(setting, configuration.settings);
    const bool hidden = HidesValue(setting, configuration.settings);
    Json value;
    if (setting.is_list()) {
      value = Json::Array({values.begin(), values.end()});
    } else if (std::holds_alternative<uint64_t Settings::*>(setting.target)) {
      value = configuration.settings.*std::get<uint64_t Settings::*>(setting.target);
    } else if (!hidden) {
      value = values.front();
    }
    Json shown =
        Json::Object({{"value", std::move(value)}, {"from", configuration.OriginOf(setting.name)}});
    if (hidden) shown.Add("hidden", values.front());
    settings.Add(setting.name, std::move(shown));
  }
  return settings.IndentedText(2) + "\n";
}

std::string DescribeForPage(const Setting& setting) {
  const Command command = setting.of == Command::kBoth ? Command::kServe : setting.of;
  const std::string value = ShowYaml(setting, ShowValue(setting, DefaultsOf(command)));
  return fmt::format("### `{}`\n{} {}\n\nType: {}. Default: `{}`. Flag: `{}`. Environment: `{}`.\n",
                     setting.name, setting.help, setting.advice, TypeOf(setting), value,
                     FlagOf(setting), EnvironmentNameOf(setting.name));
}

}  // namespace headgate::app
