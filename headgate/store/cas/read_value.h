// Reads one value for a command that ends afterwards, and waits for the connection that this needs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::store::cas {

// Runs the loop, for at most `timeout`.
absl::StatusOr<std::optional<Versioned>> ReadValue(VersionedStore& service, net::EventLoop& loop,
                                                   std::string_view name, base::Duration timeout);

// The bytes of the bucket of this name in a compare-and-set store; empty if there is none. DataLoss
// if its value is damaged.
absl::StatusOr<std::string> ReadBucket(VersionedStore& service, net::EventLoop& loop,
                                       std::string_view name, base::Duration timeout);

}  // namespace headgate::store::cas
