// No bytes open as a reservation, except sealed ones. Sealed bytes that are cut or changed open as
// the same reservation or not at all.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/front/api/reservation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using headgate::front::api::OpenReservation;
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(data)), size);
  HEADGATE_CHECK(!OpenReservation(text, "secret"));

  const headgate::rule::Entry entry{"k", text};
  const headgate::rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = size};
  const auto token = headgate::front::api::SealReservation(
      {.domain = "d", .descriptors = {&descriptor, 1}}, "id",
      {.expiry = headgate::base::Instant::FromNanos(1'000'000'000),
       .taken_at = headgate::base::Instant::FromNanos(7),
       .takes = {{.cost = size, .mark = size * size}}},
      "secret");
  if (!token) return 0;
  const auto opened = OpenReservation(*token, "secret");
  HEADGATE_CHECK(opened.has_value());
  std::string changed = *token;
  changed[size % changed.size()] = size > 0 ? static_cast<char>(data[0]) : '-';
  if (const auto other = OpenReservation(changed, "secret")) {
    HEADGATE_CHECK(other->check == opened->check && other->reservation == opened->reservation);
  }
  return 0;
}
