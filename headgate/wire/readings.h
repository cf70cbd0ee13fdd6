// The readings of requests by other parsers. The rows are examples that were tried with the real
// parsers: tests/integration/test_readings.py sends each one to them. If two readings differ, a
// client can reach a limited endpoint without being counted, or have a bucket of its own for each
// request. So a mapping that needs this part of the request calls
// it invalid, or reads all spellings alike.
//
// The code uses these tables of the characters that it refuses, and that it reads as `_` in names.
// docs/reference/mappings.md shows the rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace headgate::wire {

enum class Part : uint8_t {
  kPath,
  kQuery,
  kCookie,
  kHeader,
  kCredentials,
  kMethod,
  kHost,
  kAddress,
};
std::string_view Name(Part part);

// The purpose of the characters of a row.
enum class Use : uint8_t {
  kNone,
  kRefusedInPath,
  kRefusedInPathEscaped,
  kRefusedInQuery,
  kRefusedInCookie,
  kSkippedInName,  // in front of the name of a parameter or cookie
  kFoldedInName,   // `_` in the name of a parameter or cookie
  kBeginsMember,   // the name of a parameter or cookie ends here, and a name of a member follows
};

struct Reading {
  Part part;
  std::string_view sent;    // the request line without its version, or fields, one on each line
  std::string_view reader;  // the parsers that read it differently from others: "PHP, Rack"
  std::string_view as;      // the value that they read; "-" if they read none
  std::string_view here;    // the value that Headgate reads, or "invalid"
  Use use = Use::kNone;
  std::string_view characters{};
};

std::span<const Reading> Readings();

using CharacterSet = std::array<bool, 256>;

// By use.
extern const std::array<CharacterSet, 8> kCharacterSets;

// The characters of all rows with this use, and all control characters for the rows that refuse.
inline const CharacterSet& CharactersOf(Use use) {
  return kCharacterSets[static_cast<size_t>(use)];
}

inline bool Has(const CharacterSet& set, char c) { return set[static_cast<unsigned char>(c)]; }

}  // namespace headgate::wire
