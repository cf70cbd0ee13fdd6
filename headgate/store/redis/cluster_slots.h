// Parses the information of a cluster's nodes about the owners of slots: the answer to CLUSTER
// SLOTS, and the text of MOVED and ASK. These are foreign bytes, so everything is checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/net/stream.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

// Slots first … last, both included, belong to the primary.
struct SlotRange {
  uint16_t first = 0;
  uint16_t last = 0;
  net::StreamTarget primary;
  bool operator==(const SlotRange&) const = default;
};

// InvalidArgument if `answer` is not a valid answer. A node that does not give its host is at
// `asked_host`.
absl::StatusOr<std::vector<SlotRange>> ParseClusterSlots(const wire::RespValue& answer,
                                                         const std::string& asked_host);

struct Redirect {
  uint16_t slot = 0;
  net::StreamTarget target;
};

// Parses `MOVED 3999 127.0.0.1:6381` or `ASK …`; nullopt if `error` is neither.
std::optional<Redirect> ParseRedirect(std::string_view error, const std::string& asked_host);

}  // namespace headgate::store::redis
