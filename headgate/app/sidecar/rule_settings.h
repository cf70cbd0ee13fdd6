// The settings of the rules in front of a sidecar's pool, and of the store that they count in, read
// from its flags.
#pragma once

#include <optional>

#include "headgate/app/settings/flag_reader.h"
#include "headgate/app/settings/settings.h"
#include "headgate/app/settings/store_settings.h"
#include "headgate/app/sidecar/flags.h"

namespace headgate::app {

struct SidecarRuleSettings {
  // The sources of the rules, the mapping file (`auth`), and the memory of the engine.
  Settings engine{};
  std::optional<StoreSettings> store{};  // that the rules count in; absent: in this process
};

SidecarRuleSettings ReadRules(const SidecarFlags& flags, FlagReader& reader);

}  // namespace headgate::app
