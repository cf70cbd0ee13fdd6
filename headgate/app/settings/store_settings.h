// Reads the settings of the shared store and the files that they name, and checks that they are
// consistent.
#pragma once

#include <optional>
#include <string>

#include "headgate/app/settings/configuration.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/store/backend_options.h"

namespace headgate::app {

struct StoreSettings {
  store::BackendOptions backend;
  limiter::BucketNaming naming;
};

// Changes the defaults of settings for a store that is strict (store/open): its calls take longer,
// and requests are refused, not decided without it. Settings that were given stay.
void UseDefaultsOfStore(Configuration& configuration);

// Nothing if no store is named. All problems go to the configuration; if there are any, the result
// must not be used.
std::optional<StoreSettings> ReadStoreSettings(Configuration& configuration);

// The settings of one kind that differ from their defaults, as "a, b". Those of the store have no
// effect without it.
std::string ChangedSettings(const Configuration& configuration, bool (*is_of_kind)(const Setting&));

}  // namespace headgate::app
