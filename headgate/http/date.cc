#include "headgate/http/date.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace headgate::http {
namespace {

void WriteDigits(unsigned value, char* out, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

}  // namespace

std::array<char, 29> Date(base::WallTime now) {
  static constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::chrono::sys_seconds t{std::chrono::floor<std::chrono::seconds>(
      base::Duration(base::Clamp(base::Instant{now.ns}).ns))};
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{t - day};
  std::array<char, 29> out;
  constexpr std::string_view kPattern = "Sun, 00 Jan 0000 00:00:00 GMT";
  static_assert(kPattern.size() == std::tuple_size_v<decltype(out)>);
  std::copy(kPattern.begin(), kPattern.end(), out.begin());
  std::copy_n(kDays.begin() + 3 * std::chrono::weekday{day}.c_encoding(), 3, out.begin());
  WriteDigits(static_cast<unsigned>(date.day()), &out[5], 2);
  std::copy_n(kMonths.begin() + 3 * (static_cast<unsigned>(date.month()) - 1), 3, out.begin() + 8);
  WriteDigits(static_cast<unsigned>(static_cast<int>(date.year())), &out[12], 4);
  WriteDigits(static_cast<unsigned>(time.hours().count()), &out[17], 2);
  WriteDigits(static_cast<unsigned>(time.minutes().count()), &out[20], 2);
  WriteDigits(static_cast<unsigned>(time.seconds().count()), &out[23], 2);
  return out;
}

}  // namespace headgate::http
