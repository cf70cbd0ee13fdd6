// Reads the settings of the shared store and the files that they name, and checks that they are
// consistent.
#pragma once

#include <optional>
#include <string>

#include "headgate/app/configuration.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/store/backend_options.h"

namespace headgate::app {

struct StoreSettings {
  store::BackendOptions backend;
  limiter::BucketNaming naming;
};

// Nothing if no store is named. All problems go to the configuration; if there are any, the result
// must not be used.
std::optional<StoreSettings> ReadStoreSettings(Configuration& configuration);

// The store settings that differ from their defaults, as "a, b". Without a store they have no
// effect.
std::string SettingsWithoutStore(const Settings& settings);

}  // namespace headgate::app
