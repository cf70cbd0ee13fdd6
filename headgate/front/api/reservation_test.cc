#include "headgate/front/api/reservation.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "headgate/front/api/check_json.h"
#include "headgate/wire/digest.h"

namespace headgate::front::api {
namespace reservation_test {

const Reservation kReservation{.expiry = base::Instant::FromNanos(1'790'000'000'123'000'000),
                               .taken_at = base::Instant::FromNanos(1'789'999'999'123'456'789),
                               .place = 0xfedc'ba98'7654'3210,
                               .takes = {{.cost = uint64_t{1} << 63, .mark = 0xabc}, {}}};

std::string Sealed(std::string_view secret = "s") {
  static const rule::Entry kEntries[] = {{"api_key", "k\"1\xc3\xa4"}, {"path", ""}};
  const rule::Descriptor descriptors[] = {
      {.entries = kEntries, .cost = 500},
      {.entries = {kEntries, 1}, .override_limit = rule::OverrideLimit{7, rule::Unit::kWeek}}};
  return *SealReservation({.domain = "edge", .descriptors = descriptors}, "id-1", kReservation,
                          secret);
}

TEST(Reservation, ComesBackAsItWasSealed) {
  const auto opened = OpenReservation(Sealed(), "s");
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->reservation, kReservation);
  CheckParser parser;
  limiter::Request request;
  ASSERT_FALSE(parser.Parse(opened->check, request)) << opened->check;
  EXPECT_EQ(request.domain, "edge");
  EXPECT_EQ(parser.id(), "id-1");
  ASSERT_EQ(request.descriptors.size(), 2u);
  EXPECT_EQ(request.descriptors[0].entries[0].value, "k\"1\xc3\xa4");
  EXPECT_EQ(request.descriptors[0].entries[1].value, "");
  EXPECT_EQ(request.descriptors[0].cost, 500u);
  EXPECT_EQ(request.descriptors[1].cost, 1u);
  EXPECT_EQ(request.descriptors[1].override_limit->requests_per_unit, 7u);
  EXPECT_EQ(request.descriptors[1].override_limit->unit, rule::Unit::kWeek);
}

TEST(Reservation, NoOtherSecretAndNoChangeOpensIt) {
  const std::string token = Sealed();
  EXPECT_FALSE(OpenReservation(token, "other"));
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    const auto opened = OpenReservation(changed, "s");
    // The last character may have bits that mean nothing.
    if (opened) {
      EXPECT_EQ(opened->check, OpenReservation(token, "s")->check) << i;
    }
  }
  for (const char* const none : {"", "A", "AAAA", "!!!"}) EXPECT_FALSE(OpenReservation(none, "s"));
  EXPECT_FALSE(OpenReservation(token.substr(0, token.size() - 4), "s"));
}

TEST(Reservation, HasABound) {
  const std::string value(kReservationBytesMax, 'x');
  const rule::Entry entry{"k", value};
  const rule::Descriptor descriptor{.entries = {&entry, 1}};
  const Reservation one{.expiry = kReservation.expiry, .taken_at = {}, .takes = {{}}};
  EXPECT_FALSE(SealReservation({.domain = "d", .descriptors = {&descriptor, 1}}, "i", one, "s"));
}

// Before an update, a fleet sealed reservations without the amounts that were taken.
TEST(Reservation, OfAnotherVersionIsNotOpened) {
  for (const std::string payload :
       {"1790000000123 1789999999123456789 {\"id\":\"a\"}", "1790000000123 17 0 ", "1790000000123",
        "1790000000123 17 0 5 {}", "1790000000123 17 0 5:x {}", "1790000000123 17 0 5:1"}) {
    const wire::Mac seal = wire::HmacSha256("s", payload);
    const std::string sealed = std::string(seal.begin(), seal.end()) + payload;
    EXPECT_FALSE(OpenReservation(absl::WebSafeBase64Escape(sealed), "s")) << payload;
  }
}

}  // namespace reservation_test
}  // namespace headgate::front::api
