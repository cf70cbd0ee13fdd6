#include "headgate/app/settings/setting_flags.h"

#include <fmt/format.h>

#include <algorithm>

namespace headgate::app {

SettingFlags::SettingFlags(bool (*takes)(const Setting&)) {
  for (const Setting& setting : AllSettings()) {
    if (takes(setting)) values_.emplace_back(&setting, std::vector<std::string>());
  }
}

void SettingFlags::AddTo(std::vector<Flag>& flags) {
  for (auto& [setting, values] : values_)
    flags.push_back({FlagOf(*setting), &values, setting->choices == kNoOrYes ? "yes" : ""});
}

bool SettingFlags::any() const {
  return std::ranges::any_of(values_, [](const auto& flag) { return !flag.second.empty(); });
}

absl::StatusOr<GivenValues> SettingFlags::Take() const {
  GivenValues given;
  for (const auto& [setting, values] : values_) {
    if (values.empty()) continue;
    if (!setting->is_list() && values.size() > 1) {
      return absl::InvalidArgumentError(
          fmt::format("{} is given {} times", FlagOf(*setting), values.size()));
    }
    given.emplace(std::string(setting->name), GivenValue{values, {FlagOf(*setting)}});
  }
  return given;
}

}  // namespace headgate::app
