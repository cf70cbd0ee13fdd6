// The settings that every server process reads alike: threads, log, credential.
#pragma once

#include <cstdint>

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/settings.h"
#include "headgate/observe/log_line.h"

namespace headgate::app {

uint32_t ThreadsOf(const Settings& settings);

// With a fresh secret for hashing clients' keys.
observe::LogOptions LogOptionsOf(const Settings& settings);

// Reads the first line of `credential_file` into `credential`.
void ReadCredential(Configuration& configuration);

}  // namespace headgate::app
