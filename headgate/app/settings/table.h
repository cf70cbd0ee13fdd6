// The parts of the table of settings, which settings.h puts together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headgate/app/settings/settings.h"

namespace headgate::app {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1000 * kMillisecond;
inline constexpr uint64_t kYear = 365 * 24 * 3600 * kSecond;

// The groups with settings in both parts.
inline constexpr std::string_view kListening = "Listening";
inline constexpr std::string_view kRules = "Rules";
inline constexpr std::string_view kMemory = "Memory";
inline constexpr std::string_view kStore = "The store that instances share";
inline constexpr std::string_view kTlsGroup = "TLS";
inline constexpr std::string_view kAccess = "Access";
inline constexpr std::string_view kConnections = "Connections";

// Includes the settings that a sidecar has too.
std::span<const Setting> SettingsOfServe();
// The proxy's, and those of a sidecar alone. The ones with the name of a setting of `serve` differ
// from it in their meaning, their default or their bounds.
std::span<const Setting> SettingsOfProxy();

}  // namespace headgate::app
