// The settings of `headgate sidecar`, checked and combined.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/listen_address.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/app/sidecar/proxy_settings.h"
#include "headgate/replay/access_log.h"

namespace headgate::app {

// An access log that is replayed in place of serving.
struct PlanSettings {
  std::string log;
  replay::ClientPlace client{};
};

struct SidecarSettings : ProxySettings {
  std::optional<std::string> printed{};            // for --print-config, in place of serving
  std::optional<PlanSettings> plan{};              // if present, only `share` has a meaning
  Configuration configuration{Command::kSidecar};  // read by all other parts
  std::optional<ListenAddress> admin{};            // absent: none
  // That the rules, and a fleet's pool, count in; absent: in this process.
  std::optional<StoreSettings> store{};

  const Settings& values() const { return configuration.settings; }
  bool has_rules() const { return HasRules(values()); }
};

// Reads the settings file, the environment and the flags. Nothing if a value is wrong; all errors,
// each with a hint, are then on the console.
std::optional<SidecarSettings> ReadSidecarSettings(const std::vector<std::string>& arguments,
                                                   const Environment& environment,
                                                   const Console& console);

}  // namespace headgate::app
