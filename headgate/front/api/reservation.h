// A reservation as its client holds it: what was taken, under which id, and until when it can be
// settled, with a seal. The server keeps nothing; so a reservation survives a restart, and any
// instance with the same secret settles it.
//
//   token   = base64url(seal, payload)         seal = HMAC-SHA-256 of the payload
//   payload = expiry in ms since 1970, a space, the time at which it was taken, in ns since 1970, a
//             space, and the check as JSON, with its costs and id
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::api {

// The longest time in which a reservation can be settled.
inline constexpr base::Duration kReservationExpiresMax = std::chrono::hours(1);

// Larger requests cannot be reserved.
inline constexpr size_t kReservationBytesMax = 16 * 1024;

struct ReservationTimes {
  base::Instant expiry;  // in whole milliseconds
  base::Instant taken_at;
  bool operator==(const ReservationTimes&) const = default;
};

// Absent if it would be longer than kReservationBytesMax. `id` names the reservation.
std::optional<std::string> SealReservation(const limiter::Request& request, std::string_view id,
                                           const ReservationTimes& times, std::string_view secret);

struct OpenedReservation {
  ReservationTimes times;
  std::string check;  // the body of a check
};
// Absent if the token was not made with this secret.
std::optional<OpenedReservation> OpenReservation(std::string_view token, std::string_view secret);

}  // namespace headgate::front::api
