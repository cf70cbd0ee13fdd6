// Planted bugs. Each must be caught within a number of seeds; otherwise the simulator has a blind
// spot. They are planted here, on both sides of the SharedDecider and in the text of the scripts:
// the product has no switch for them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headgate::simulation {

enum class Mutant : uint8_t {
  // Bugs of the node.
  kLeaseNeverEnds,
  kDeadlineFromReceipt,
  kNoMargin,
  kDeadlineOneLater,
  kLateGrantAccepted,
  kTimedOutGrantSpent,
  kAnswerTakenTwice,
  kReturnedAndSpent,
  kReportNotCumulative,
  kReturnForgetsWhatWasSpent,
  kGivenBackAndRefunded,
  kNumbersAfterRestart,
  kClockStopsInPause,
  kDenialNeverEnds,
  kNeverRenewed,
  kNeverReturned,
  kTimeoutCalledExact,
  kLateAnswerDecidesAgain,
  kAnswerForAnother,
  kDegradedCalledLeased,
  kShareIsWhole,
  kTakenTwice,
  // Bugs of the store.
  kGrantedTwice,
  kGivenBackTwice,
  kLateReportForgetsWhatWasSpent,
  kLateReportGivesBackTwice,
  kLateReportGivesBackRefilled,
  kRefillNotClamped,
  kExpiredNotMadeGood,
  kExpiredGivenBack,
  kReturnNotClamped,
  kWindowOutlived,
  kSetBackOutlivesWindow,
  kChangeMints,
  kChangeForgetsLeases,
  kKeyDiesBeforeLease,
  kExpiresEarly,
  kNeverExpires,
  kQueueTakesNoTime,
  kLogRefundsAll,
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
  std::string_view sentence;
};

std::span<const MutantRow> AllMutants();
std::optional<Mutant> MutantByName(std::string_view name);

// Whether it is a bug in the text of a script.
bool IsInScripts(Mutant mutant);
// The text of a script with the bug in it.
std::string Mutate(std::optional<Mutant> mutant, std::string_view script);

}  // namespace headgate::simulation
