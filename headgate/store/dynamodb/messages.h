// The bodies of DynamoDB's requests and answers. Pure.
//
// An item is a bucket:
//
//   name     S  the key: the bucket's name, or a hash of it
//   state    B  the bytes of the value (store/cas/envelope.h)
//   version  N  a random number, drawn for each write
//   expires  N  seconds since 1970: when DynamoDB may remove it (its time to live)
//
// Versions are random so that no two values of a name ever have the same one, even if DynamoDB has
// removed the item in between.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::store::dynamodb {

inline constexpr std::string_view kNameAttribute = "name";
inline constexpr std::string_view kExpiresAttribute = "expires";

// A name as the key of an item: itself, or a hash of it if it is long or not UTF-8.
std::string KeyOf(std::string_view name);

std::string GetBody(std::string_view table, std::string_view key);
// Replaces the item if it has the expected version. If that is empty, the item must not
// exist. Version 0 stands for an item without a readable version.
std::string PutBody(std::string_view table, std::string_view key, std::string_view bytes,
                    std::optional<cas::Version> expected, cas::Version next,
                    base::Instant expires_at);
std::string DeleteBody(std::string_view table, std::string_view key, cas::Version expected);

// The answer to GetItem. An item that is not one of ours, or is damaged, has empty bytes, so that
// it is replaced.
absl::StatusOr<std::optional<cas::Versioned>> ParseItem(std::string_view body);

// An instance, and when it wrote last by its own clock.
struct Heartbeat {
  std::string instance;
  int64_t time_ms = 0;

  bool operator==(const Heartbeat&) const = default;
};
// Writes a heartbeat into an item, and removes those of the `silent` instances. The answer contains
// all heartbeats.
std::string HeartbeatBody(std::string_view table, std::string_view key, std::string_view instance,
                          int64_t time_ms, int64_t expires_s,
                          const std::vector<std::string>& silent);
std::string LeaveBody(std::string_view table, std::string_view key, std::string_view instance);
absl::StatusOr<std::vector<Heartbeat>> ParseHeartbeats(std::string_view body);

// The reason that DynamoDB gave for a request that it did not carry out.
//
// Aborted: a condition does not hold. ResourceExhausted: throttled, not applied. NotFound: there is
// no such table. AlreadyExists: it exists, or is in use. PermissionDenied: the credentials, their
// rights or the signature. OutOfRange: the item is too large. InvalidArgument: another fault of the
// request. Unknown: a failure of the service, after which a write may have been applied.
// Unimplemented: the server does not know the action.
struct Refusal {
  absl::Status status;
  // Other credentials may be accepted: these are expired or not known.
  bool is_about_credentials = false;
  // The time of the signature differs too much from the server's clock.
  bool is_about_time = false;
};
Refusal ParseRefusal(int http_status, std::string_view body);

}  // namespace headgate::store::dynamodb
