// A value in a shared store that cannot be read: its checksum is wrong, or it is not Headgate's. It
// stays as it is, so that nobody gets a fresh bucket, until its key is reset.
#pragma once

#include <string_view>

#include "headgate/base/status.h"

namespace headgate::store {

// The error of requests for it, which the failure policy of their rule then decides.
inline absl::Status DamagedValueError() {
  return absl::DataLossError(
      "the value of the key in the store is damaged; reset the key to start again");
}

// For StoreListener::on_alarm.
inline constexpr std::string_view kDamagedValueAlarm =
    "the value of a bucket is damaged; requests for it are decided by on_store_failure until its "
    "key is reset";

}  // namespace headgate::store
