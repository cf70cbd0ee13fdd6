// A reservation as its client holds it, with a seal: the costs taken, their buckets, the id, and
// the time until which it can be settled. The server keeps nothing; so a reservation survives a
// restart if the buckets do, and any instance with the same buckets and the same secret settles it.
//
//   token   = base64url(seal, payload)         seal = HMAC-SHA-256 of the payload
//   payload = expiry in ms since 1970, the time at which it was taken, in ns since 1970, the place
//             of the buckets, what was taken for each descriptor (cost:mark:time, with commas), and
//             the check as JSON, with its stated costs and its id; spaces in between
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/front/api/reserved_buckets.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// The longest time in which a reservation can be settled.
inline constexpr base::Duration kReservationExpiresMax = std::chrono::hours(1);

// Larger requests cannot be reserved.
inline constexpr size_t kReservationBytesMax = 16 * 1024;

struct Reservation {
  base::Instant expiry;  // in whole milliseconds
  base::Instant taken_at;
  // The store that has the buckets; 0 if instances share it.
  uint64_t place = 0;
  std::vector<ReservedTake> takes{};  // one for each descriptor
  bool operator==(const Reservation&) const = default;
};

// Absent if it would be longer than kReservationBytesMax. `id` names the reservation.
std::optional<std::string> SealReservation(const limiter::Request& request, std::string_view id,
                                           const Reservation& reservation, std::string_view secret);

struct OpenedReservation {
  Reservation reservation;
  std::string check;  // the body of a check
};
// Absent if the token was not made with this secret.
std::optional<OpenedReservation> OpenReservation(std::string_view token, std::string_view secret);

}  // namespace headgate::front::api
