// Bugs that can be planted in the adapter, the service and the fleet. The simulator has to find
// each. Bugs in the product's own lines are in tests/simulation/source_mutants.txt.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headgate::strict_simulation {

enum class Mutant : uint8_t {
  kStaleReads,
  kVersionIgnored,
  kLostAnswerCalledLost,
  kLostAnswerCalledDone,
  kSentAgainSilently,
  kFailureAllows,
  kRemovedEarly,
  kRemovedWhileUsed,
  kClocksApart,
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
  std::string_view bug;
};

inline constexpr auto kMutants = std::to_array<MutantRow>({
    {Mutant::kStaleReads, "stale-reads", "a read may return the value of some time ago"},
    {Mutant::kVersionIgnored, "version-ignored", "a write succeeds whatever its version"},
    {Mutant::kLostAnswerCalledLost, "lost-answer-called-lost",
     "a write whose answer was lost counts as not done, so it is decided again"},
    {Mutant::kLostAnswerCalledDone, "lost-answer-called-done",
     "a write whose answer does not come counts as done"},
    {Mutant::kSentAgainSilently, "sent-again-silently",
     "an adapter repeats a write by itself, and tells the outcome of the second attempt"},
    {Mutant::kFailureAllows, "failure-allows", "a request that the store cannot answer is allowed"},
    {Mutant::kRemovedEarly, "removed-early",
     "a value is removed as soon as it has expired, though others know its version"},
    {Mutant::kRemovedWhileUsed, "removed-while-used", "a value is removed before it has expired"},
    {Mutant::kClocksApart, "clocks-apart",
     "the clocks of two instances differ by more than the plan says"},
});

inline std::optional<Mutant> MutantByName(std::string_view name) {
  for (const MutantRow& row : kMutants) {
    if (row.name == name) return row.mutant;
  }
  return std::nullopt;
}

}  // namespace headgate::strict_simulation
