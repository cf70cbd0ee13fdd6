// The settings of the pool of a sidecar, read from its flags.
#pragma once

#include <optional>
#include <string_view>

#include "headgate/algorithm/fair_share.h"
#include "headgate/app/flag_reader.h"
#include "headgate/app/sidecar_flags.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

// "10%" or "2.5%", in steps of a tenth of a percent.
std::optional<algorithm::Ratio> ParsePercentage(std::string_view text);

share::ShareOptions ReadShare(const SidecarFlags& flags, FlagReader& reader);

}  // namespace headgate::app
