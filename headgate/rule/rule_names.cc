#include "headgate/rule/rule_names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace headgate::rule {
namespace {

struct NamedUnit {
  std::string_view name;
  Unit unit;
  base::Duration period;
};
constexpr std::array<NamedUnit, 7> kUnits{{{"second", Unit::kSecond, std::chrono::seconds(1)},
                                           {"minute", Unit::kMinute, std::chrono::minutes(1)},
                                           {"hour", Unit::kHour, std::chrono::hours(1)},
                                           {"day", Unit::kDay, std::chrono::hours(24)},
                                           {"week", Unit::kWeek, std::chrono::hours(7 * 24)},
                                           {"month", Unit::kMonth, std::chrono::hours(30 * 24)},
                                           {"year", Unit::kYear, std::chrono::hours(365 * 24)}}};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::string DomainIdentity(std::string_view domain) {
  return fmt::format("{}:{}", domain.size(), domain);
}

std::string ChildIdentity(std::string_view parent, std::string_view key, std::string_view value) {
  return fmt::format("{}{}:{}{}:{}", parent, key.size(), key, value.size(), value);
}

std::optional<Unit> UnitByName(std::string_view name) {
  for (const NamedUnit& known : kUnits) {
    if (std::equal(name.begin(), name.end(), known.name.begin(), known.name.end(),
                   [](char a, char b) { return Lower(a) == b; })) {
      return known.unit;
    }
  }
  return std::nullopt;
}

std::string_view Name(Unit unit) {
  for (const NamedUnit& known : kUnits) {
    if (known.unit == unit) return known.name;
  }
  return "";
}

base::Duration PeriodOf(Unit unit) {
  for (const NamedUnit& known : kUnits) {
    if (known.unit == unit) return known.period;
  }
  return base::Duration(0);
}

std::optional<Unit> UnitOf(const algorithm::LimitSpec& spec) {
  if (spec.align == algorithm::Align::kCalendarDay) return Unit::kDay;
  if (spec.align == algorithm::Align::kCalendarWeek) return Unit::kWeek;
  if (spec.align == algorithm::Align::kCalendarMonth) return Unit::kMonth;
  if (spec.align == algorithm::Align::kCalendarYear) return Unit::kYear;
  for (const NamedUnit& known : kUnits) {
    if (known.period == spec.period) return known.unit;
  }
  return std::nullopt;
}

}  // namespace headgate::rule
