// Geohash: a cell of the earth as text. Bits of longitude and latitude alternate, longitude first,
// five to a character; cells near each other mostly share a prefix. Integers only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::mapping {

// Cells of 12 characters measure 37 mm × 19 mm at the equator.
inline constexpr uint32_t kGeohashCharactersMax = 12;
inline constexpr std::string_view kGeohashAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz";

// Degrees as a decimal number ("-5.603"), in units of 10^-9 degrees, rounded down. Empty if the
// text is not such a number or is outside [-bound, bound] degrees.
std::optional<int64_t> ParseDegrees(std::string_view text, int64_t bound);

// Appends the cell of a position in units of 10^-9 degrees. The longitude 180 is -180. `characters`
// is 1 to kGeohashCharactersMax.
void AppendGeohash(int64_t latitude, int64_t longitude, uint32_t characters, std::string& out);

}  // namespace headgate::mapping
