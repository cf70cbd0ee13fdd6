// The texts of the scripts, made of scripts/*.lua when the tree is configured.
#pragma once

#include <string_view>

namespace headgate::store::redis {

extern const std::string_view kMeterText;
extern const std::string_view kQueueText;
extern const std::string_view kFixedWindowText;
extern const std::string_view kSlidingCounterText;
extern const std::string_view kSlidingLogText;
extern const std::string_view kCounterText;
extern const std::string_view kPermitsText;

}  // namespace headgate::store::redis
