#include "headgate/app/sidecar/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "headgate/app/runtime/file_checks.h"
#include "headgate/app/settings/process_settings.h"
#include "headgate/app/settings/setting_arguments.h"
#include "headgate/app/settings/tls_settings.h"
#include "headgate/app/settings/watch_settings.h"
#include "headgate/app/sidecar/share_settings.h"
#include "headgate/handover/handover.h"

namespace headgate::app {
namespace {

// The flags that are not settings.
struct PlanFlags {
  std::optional<std::string> log;
  std::optional<std::string> client;
};

class SidecarReader {
 public:
  explicit SidecarReader(Configuration& configuration)
      : configuration_(configuration), values_(configuration.settings) {}

  SidecarSettings Read(const PlanFlags& plan) {
    ReadPlan(plan);
    if (settings_.plan) {
      settings_.share = ReadShare(configuration_);
      settings_.fleet_pool = ReadFleet(configuration_, settings_.share);
      return std::move(settings_);
    }
    static_cast<ProxySettings&>(settings_) = ReadProxySettings(configuration_);
    if (!values_.admin_listen.empty())
      settings_.admin = ParseListenAddress(values_.admin_listen).value_or(ListenAddress{});
    ReadCredential(configuration_);
    CheckCertificates(configuration_);
    ReadHandover();
    ReadRules();
    // The clients may all come through one proxy.
    if (values_.max_connections_per_address == 0)
      values_.max_connections_per_address = values_.max_connections;
    return std::move(settings_);
  }

 private:
  void Refuse(std::string_view what, std::string_view hint) { configuration_.Refuse(what, hint); }

  void ReadPlan(const PlanFlags& plan) {
    if (!plan.log) {
      if (plan.client) Refuse("--plan-client without --plan", "--plan access.log --plan-client -1");
      return;
    }
    // The plan knows only the pool, so it would promise too much if rules refuse requests too.
    if (HasRules(values_) || !values_.mappings.empty()) {
      Refuse("--plan with rules",
             "a plan knows the pool alone; remove --rules, --rule, --watch and --mappings");
    }
    if (values_.scope == "fleet") {
      Refuse("--plan with --scope fleet",
             "a plan knows one pool that sees all requests; remove --scope");
    }
    const auto client = replay::ClientPlace::Parse(plan.client.value_or("1"));
    if (client.ok()) {
      settings_.plan = {.log = *plan.log, .client = *client};
    } else {
      Refuse(fmt::format("--plan-client: {}", std::string(client.status().message())),
             "--plan-client -1");
    }
  }

  void ReadHandover() {
    const std::string& path = values_.handover;
    const auto refuse = [&](std::string_view why) {
      Refuse(fmt::format("--handover {}", why),
             "--handover /run/headgate/handover, or leave it out");
    };
    if (path.empty()) {
      // A settings file may say that there is none; a flag without a path is a mistake.
      const auto given = configuration_.origins.find("handover");
      if (given != configuration_.origins.end() && given->second.mark.line == 0)
        refuse("needs a path");
      return;
    }
    if (path.size() > handover::kPathBytesMax) {
      return refuse(fmt::format("has a path of {} bytes; it may have {}", path.size(),
                                handover::kPathBytesMax));
    }
    const auto full = [](const std::string& name) {
      std::error_code none;
      return std::filesystem::absolute(name, none).lexically_normal();
    };
    const auto is_the_same = [&](const ListenAddress& address) {
      return address.endpoint.is_unix() && full(address.endpoint.address) == full(path);
    };
    if (std::ranges::any_of(settings_.listen, is_the_same) ||
        (settings_.admin && is_the_same(*settings_.admin)))
      refuse("names a socket for clients: it must be a path of its own");
  }

  void ReadRules() {
    CheckAuditLog(configuration_);
    CheckUsers(configuration_);
    if (values_.watch.empty()) {
      CheckUnused(IsOfWatch, "watch", "--watch zk://HOST:PORT/path");
    } else {
      CheckWatch(configuration_);
    }
    const bool is_fleet = values_.scope == "fleet";
    const bool has_store = !values_.store.empty();
    if (!has_store) CheckUnused(IsOfStore, "store", "--store URL");
    if (has_store && (HasRules(values_) || is_fleet))
      settings_.store = ReadStoreSettings(configuration_);
    if (HasRules(values_)) return;
    values_.max_buckets = values_.max_limits = 1;  // nothing is counted
    if (has_store && !is_fleet) {
      Refuse("--store without rules",
             "add --rules PATH, --rule TEXT or --watch URL, or --scope fleet: replicas share the "
             "pool");
    }
  }

  // Settings that have no effect without the setting `main` are refused without it.
  void CheckUnused(bool (*is_of_main)(const Setting&), std::string_view main,
                   std::string_view example) {
    const std::string unused = ChangedSettings(configuration_, is_of_main);
    if (unused.empty()) return;
    const std::string_view first = std::string_view(unused).substr(0, unused.find(','));
    Refuse(fmt::format("{} without --{}", FlagOf(*FindSetting(first, Command::kSidecar)), main),
           fmt::format("add {}, or remove it", example));
  }

  Configuration& configuration_;
  Settings& values_;
  SidecarSettings settings_;
};

}  // namespace

std::optional<SidecarSettings> ReadSidecarSettings(const std::vector<std::string>& arguments,
                                                   const Environment& environment,
                                                   const Console& console) {
  PlanFlags plan;
  const auto parsed =
      ParseSettingArguments(Command::kSidecar, arguments, console,
                            {{"--plan", &plan.log}, {"--plan-client", &plan.client}});
  if (!parsed) return std::nullopt;
  Configuration configuration = Configure(*parsed, environment);
  UseDefaultsOfStore(configuration);
  if (parsed->json && !parsed->print_config)
    configuration.Refuse("--json without --print-config", "--print-config --json");
  SidecarSettings settings;
  if (parsed->print_config) {
    settings.printed =
        parsed->json ? PrintConfigurationJson(configuration) : PrintConfiguration(configuration);
  } else {
    settings = SidecarReader(configuration).Read(plan);
  }
  if (SayProblems(configuration, console)) return std::nullopt;
  settings.configuration = std::move(configuration);
  return settings;
}

}  // namespace headgate::app
