// Reads the settings of the pool of a sidecar.
#pragma once

#include <optional>
#include <string_view>

#include "headgate/algorithm/fair_share.h"
#include "headgate/app/settings/configuration.h"
#include "headgate/base/status.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

// "10%" or "2.5%", in steps of a tenth of a percent.
std::optional<algorithm::Ratio> ParsePercentage(std::string_view text);

// "ann=3". The last '=' ends the name, which may have others. InvalidArgument says what is wrong.
absl::StatusOr<share::ClientWeight> ParseClientWeight(std::string_view text);

// Problems go to the configuration; if there are any, the result must not be used.
share::ShareOptions ReadShare(Configuration& configuration);

// The name of the pool that the fleet shares, and what it needs in `share`; empty if this replica
// has a pool of its own.
std::string ReadFleet(Configuration& configuration, share::ShareOptions& share);

}  // namespace headgate::app
