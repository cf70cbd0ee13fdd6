#include "headgate/algorithm/calendar.h"

#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "headgate/algorithm/properties.h"

namespace headgate::algorithm {
namespace calendar_test {

using base::Duration;
using base::Instant;
using base::TimeZone;

Instant At(int64_t s) { return Instant::FromNanos(s * 1'000'000'000); }

TimeZone Zone(const char* name) { return *TimeZone::Load(name); }

// `date -u -d … +%s`
constexpr int64_t kDayS = 86'400;
constexpr int64_t k2024Feb1 = 1'706'745'600;
constexpr int64_t k2024Mar1 = 1'709'251'200;
constexpr int64_t k2025Jan1 = 1'735'689'600;
constexpr int64_t k2100Feb1 = 4'105'123'200;
constexpr int64_t k2100Mar1 = 4'107'542'400;

// ISO 8601: a week begins on Monday. The epoch is a Thursday.
TEST(Calendar, WeeksEndOnMonday) {
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarWeek, {}, At(0)), At(4 * kDayS));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarWeek, {}, At(4 * kDayS) - Duration(1)), At(4 * kDayS));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarWeek, {}, At(4 * kDayS)), At(11 * kDayS));
  // Monday, 21 September 2026, 14:13:20, and Monday, 28 September 2026.
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarWeek, {}, At(1'790'000'000)), At(1'790'553'600));
}

TEST(Calendar, MonthsEndWhereTheUtcCalendarSays) {
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarMonth, {}, At(0)), At(31 * kDayS));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarMonth, {}, At(k2024Feb1)), At(k2024Mar1)) << "29 days";
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarMonth, {}, At(k2024Mar1) - Duration(1)),
            At(k2024Mar1));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarMonth, {}, At(k2100Feb1)), At(k2100Mar1))
      << "28 days: no leap year";
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarMonth, {}, At(k2025Jan1) - Duration(1)),
            At(k2025Jan1));
}

TEST(Calendar, YearsEndWhereTheUtcCalendarSays) {
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarYear, {}, At(0)), At(365 * kDayS));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarYear, {}, At(k2024Feb1)), At(k2025Jan1));
  EXPECT_EQ(NextCalendarEdge(Align::kCalendarYear, {}, At(k2025Jan1)), At(k2025Jan1 + 365 * kDayS));
  EXPECT_GT(NextCalendarEdge(Align::kCalendarYear, {}, base::kInstantMax), base::kInstantMax);
}

// March 29th, 2026, has 23 hours in Berlin, and October 25th has 25.
TEST(Calendar, DaysEndAtMidnightOfTheTimeZone) {
  const auto edge = [](int64_t s) {
    return NextCalendarEdge(Align::kCalendarDay, Zone("Europe/Berlin"), At(s));
  };
  // `TZ=Europe/Berlin date -d … +%s`
  constexpr int64_t kMarch29 = 1'774'738'800, kMarch30 = kMarch29 + 23 * 3600;
  EXPECT_EQ(edge(kMarch29 - 1), At(kMarch29));
  EXPECT_EQ(edge(kMarch29), At(kMarch30));
  EXPECT_EQ(edge(kMarch30 - 1), At(kMarch30));
  EXPECT_EQ(edge(kMarch30), At(kMarch30 + 24 * 3600));
  constexpr int64_t kOctober25 = 1'792'879'200, kOctober26 = kOctober25 + 25 * 3600;
  EXPECT_EQ(edge(kOctober25), At(kOctober26));
  EXPECT_EQ(edge(kOctober26), At(kOctober26 + 24 * 3600));
}

// In Beirut the clocks go from 00:00 to 01:00 on March 29th, 2026, and on October 25th from 00:00
// back to 23:00, so that October 24th has 25 hours.
TEST(Calendar, DaysOfWhichMidnightIsSkippedOrCutOffBeginWhereTheirDateDoes) {
  const auto edge = [](int64_t s) {
    return NextCalendarEdge(Align::kCalendarDay, Zone("Asia/Beirut"), At(s));
  };
  // `TZ=Asia/Beirut date -d … +%s`
  constexpr int64_t kMarch29 = 1'774'735'200;
  EXPECT_EQ(edge(kMarch29 - 1), At(kMarch29));
  EXPECT_EQ(edge(kMarch29), At(kMarch29 + 23 * 3600));
  constexpr int64_t kOctober24 = 1'792'789'200;
  EXPECT_EQ(edge(kOctober24), At(kOctober24 + 25 * 3600));
  EXPECT_EQ(edge(kOctober24 + 24 * 3600), At(kOctober24 + 25 * 3600));
  EXPECT_EQ(edge(kOctober24 + 25 * 3600), At(kOctober24 + 49 * 3600));
}

// The same date, by the C library: an independent implementation that reads the same files.
class LocalDate {
 public:
  explicit LocalDate(const char* zone) {
    setenv("TZ", zone, 1);
    tzset();
  }
  ~LocalDate() {
    unsetenv("TZ");
    tzset();
  }
  // A number that grows where a window of this kind ends.
  static int64_t WindowAt(Align align, int64_t s) {
    tm local{};
    localtime_r(&s, &local);
    if (align == Align::kCalendarYear) return local.tm_year;
    if (align == Align::kCalendarMonth) return 12 * local.tm_year + local.tm_mon;
    local.tm_isdst = 0;
    const int64_t day = timegm(&local) / 86'400;
    return align == Align::kCalendarDay ? day : (day + 3) / 7;  // day 0 is a Thursday
  }
};

TEST(Calendar, WindowsInTimeZonesEndAsTheCLibrarySays) {
  Random random(20'261'128);
  constexpr int64_t k2020 = 1'577'836'800, k2037 = 2'114'380'800;
  for (const char* zone :
       {"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu", "Asia/Beirut",
        "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Honolulu", "Pacific/Kiritimati",
        "Africa/Casablanca", "America/Santiago", "Antarctica/Troll", "Etc/GMT+12"}) {
    const LocalDate dates(zone);
    for (const Align align :
         {Align::kCalendarDay, Align::kCalendarWeek, Align::kCalendarMonth, Align::kCalendarYear}) {
      for (int i = 0; i < 300; ++i) {
        const int64_t now = k2020 + static_cast<int64_t>(random() % (k2037 - k2020));
        const int64_t edge = NextCalendarEdge(align, Zone(zone), At(now)).ns / 1'000'000'000;
        const int64_t window = LocalDate::WindowAt(align, now);
        ASSERT_GT(edge, now) << zone;
        ASSERT_EQ(LocalDate::WindowAt(align, edge - 1), window) << zone << " " << now;
        ASSERT_EQ(LocalDate::WindowAt(align, edge), window + 1) << zone << " " << now;
        const LimitSpec spec{.align = align, .zone = Zone(zone)};
        const Instant after = NextCalendarEdge(align, Zone(zone), At(edge));
        ASSERT_GE(after - At(edge), ShortestCalendarPeriod(spec)) << zone << " " << edge;
        ASSERT_LE(after - At(edge), LongestCalendarPeriod(spec)) << zone << " " << edge;
      }
    }
  }
}

// From any time between two edges, the later one follows.
TEST(Calendar, EveryTimeIsInOneWindow) {
  Random random(7);
  for (const char* zone : {"UTC", "Europe/Berlin", "Asia/Beirut", "America/Havana"}) {
    for (const Align align : {Align::kCalendarDay, Align::kCalendarWeek, Align::kCalendarMonth}) {
      Instant edge = NextCalendarEdge(align, Zone(zone), At(1'577'000'000));
      for (int i = 0; i < 800; ++i) {
        const Instant next = NextCalendarEdge(align, Zone(zone), edge);
        const auto length = static_cast<uint64_t>((next - edge).count());
        ASSERT_LT(edge, next);
        for (const uint64_t into : {length - 1, random() % length})
          ASSERT_EQ(NextCalendarEdge(align, Zone(zone), edge + Duration(into)), next) << zone;
        edge = next;
      }
    }
  }
}

}  // namespace calendar_test
}  // namespace headgate::algorithm
