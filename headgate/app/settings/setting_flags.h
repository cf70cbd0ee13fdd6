// Settings as flags of a command: `headgate serve` takes all of them, `headgate sidecar` those of
// the store.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/settings.h"
#include "headgate/base/status.h"

namespace headgate::app {

class SettingFlags {
 public:
  // For the settings that `takes` says.
  explicit SettingFlags(bool (*takes)(const Setting&));

  // The flags refer to this object.
  void AddTo(std::vector<Flag>& flags);
  // Whether one of the flags is given.
  bool any() const;
  // The values that were parsed. InvalidArgument if a flag is given too often.
  absl::StatusOr<GivenValues> Take() const;

 private:
  // For each setting, in the order of the table.
  std::vector<std::pair<const Setting*, std::vector<std::string>>> values_;
};

}  // namespace headgate::app
