// What the settings of the shared store mean: the files that they name are read, and what they say together is checked.
#pragma once

#include <optional>
#include <string>

#include "headgate/app/configuration.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/store/redis/options.h"

namespace headgate::app {

struct StoreSettings {
  store::redis::RedisOptions redis;
  limiter::BucketNaming naming;
};

// Nothing where no store is named. What is wrong goes to the configuration's problems, all of it; where there are any,
// the result is not to be used.
std::optional<StoreSettings> ReadStoreSettings(Configuration& configuration);

// The settings of a store that differ from their defaults, as "a, b": without a store they do nothing.
std::string SettingsWithoutStore(const Settings& settings);

}  // namespace headgate::app
