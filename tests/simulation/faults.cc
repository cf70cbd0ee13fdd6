#include "tests/simulation/faults.h"

#include <algorithm>
#include <array>

namespace headgate::simulation {
namespace {

constexpr auto kRows = std::to_array<MutantRow>({
    {Mutant::kLeaseNeverEnds, "lease-never-ends",
     "a node spends a lease until it is used up, even after its end"},
    {Mutant::kDeadlineFromReceipt, "deadline-from-receipt",
     "a node counts a lease's life from when the grant came"},
    {Mutant::kNoMargin, "no-margin",
     "a node spends a lease until the store ends it, without a safety margin"},
    {Mutant::kDeadlineOneLater, "deadline-one-later",
     "a node spends a lease exactly at its deadline"},
    {Mutant::kLateGrantAccepted, "late-grant-accepted",
     "a grant that comes after its deadline is spent"},
    {Mutant::kTimedOutGrantSpent, "timed-out-grant-spent",
     "a grant that comes after its ask has timed out is spent"},
    {Mutant::kAnswerTakenTwice, "answer-taken-twice", "a grant that comes twice is spent twice"},
    {Mutant::kReturnedAndSpent, "returned-and-spent", "a returned lease is spent nevertheless"},
    {Mutant::kReportNotCumulative, "report-not-cumulative",
     "a report counts only from the last report"},
    {Mutant::kReturnForgetsWhatWasSpent, "return-forgets-spent", "a return gives everything back"},
    {Mutant::kGivenBackAndRefunded, "given-back-and-refunded",
     "a refund into a lease is also sent to the store"},
    {Mutant::kNumbersAfterRestart, "numbers-after-restart",
     "a node that restarts uses its lease ids again"},
    {Mutant::kClockStopsInPause, "clock-stops-in-pause",
     "a node's clock does not count while it is suspended"},
    {Mutant::kDenialNeverEnds, "denial-never-ends", "a denial is remembered for ever"},
    {Mutant::kNeverRenewed, "never-renewed",
     "a node asks for one lease of a key, never for another"},
    {Mutant::kNeverReturned, "never-returned", "idle leases are left to expire"},
    {Mutant::kTimeoutCalledExact, "timeout-called-exact",
     "a call that has timed out counts as answered by the store"},
    {Mutant::kLateAnswerDecidesAgain, "late-answer-decides-again",
     "a late answer decides its request a second time"},
    {Mutant::kAnswerForAnother, "answer-for-another",
     "the store's answer for one bucket decides a request to another"},
    {Mutant::kDegradedCalledLeased, "degraded-called-leased",
     "a decision without the store is reported as one from a lease"},
    {Mutant::kShareIsWhole, "share-is-whole",
     "a node that cannot ask the store admits the share of the whole fleet"},
    {Mutant::kTakenTwice, "taken-twice", "a message takes its request twice"},
    {Mutant::kGrantedTwice, "granted-twice", "an ask that comes twice is granted twice"},
    {Mutant::kGivenBackTwice, "given-back-twice", "a return that comes twice gives back twice"},
    {Mutant::kLateReportForgetsWhatWasSpent, "late-report-forgets-spent",
     "a late report gives back what was spent, too"},
    {Mutant::kLateReportGivesBackTwice, "late-report-twice",
     "a late report that comes twice gives back twice"},
    {Mutant::kLateReportGivesBackRefilled, "late-report-of-refilled",
     "a late report gives back what has refilled since, too"},
    {Mutant::kRefillNotClamped, "refill-not-clamped", "a bucket refills as if it had no leases"},
    {Mutant::kExpiredNotMadeGood, "expired-not-made-good",
     "an expired lease counts as spent when it was granted"},
    {Mutant::kExpiredGivenBack, "expired-given-back", "an expired lease counts as unspent"},
    {Mutant::kReturnNotClamped, "return-not-clamped",
     "returned requests fill the room that other leases need"},
    {Mutant::kWindowOutlived, "window-outlived", "a lease lives on when its window has ended"},
    {Mutant::kSetBackOutlivesWindow, "set-back-outlives-window",
     "a lease that is in another window after a clock is set back outlives that window"},
    {Mutant::kChangeMints, "change-mints", "a change of limit makes a new bucket"},
    {Mutant::kChangeForgetsLeases, "change-forgets-leases",
     "a change of limit forgets what is leased"},
    {Mutant::kKeyDiesBeforeLease, "key-dies-before-lease",
     "a key expires before the last of its leases"},
    {Mutant::kExpiresEarly, "expires-early", "the store ends a lease after half of its life"},
    {Mutant::kNeverExpires, "never-expires", "the store keeps leases that nobody returns"},
    {Mutant::kQueueTakesNoTime, "queue-takes-no-time",
     "requests that a queue admits occupy none of its time"},
    {Mutant::kLogRefundsAll, "log-refunds-all", "a refund to a log removes all its hits"},
});

struct Change {
  Mutant mutant;
  std::string_view from;
  std::string_view to;
};

constexpr auto kChanges = std::to_array<Change>({
    {Mutant::kGrantedTwice, "if at then\n      granted =", "if false then\n      granted ="},
    {Mutant::kGivenBackTwice,
     "lives = lives - 1\n          kept = string.sub(kept, 1, at - 1) .. string.sub(kept, at + "
     "32)\n"
     "          give_back(amount - reported)",
     "kept = string.sub(kept, 1, at + 19) .. struct.pack('>I4', amount) .. string.sub(kept, at + "
     "24)\n"
     "          give_back(amount - math.min(amount, spent))"},
    {Mutant::kLateReportForgetsWhatWasSpent, "give_back_late(math.max(0, amount - spent), hi, lo)",
     "give_back_late(amount, hi, lo)"},
    {Mutant::kLateReportGivesBackTwice,
     "ended = string.sub(ended, 1, at - 1) .. string.sub(ended, at + 32)\n          give_back_late",
     "give_back_late"},
    {Mutant::kLateReportGivesBackRefilled, "if ago_hi >= 0 then", "if false then"},
    {Mutant::kRefillNotClamped, "  hold(now_hi, now_lo, owed)\n", ""},
    {Mutant::kExpiredNotMadeGood, "if over_hi then hold(over_hi, over_lo, owed_before) end", ""},
    {Mutant::kExpiredGivenBack, "if over_hi then hold(over_hi, over_lo, owed_before) end",
     "if over_hi then\n"
     "local h, l = cost_of(owed_before - owed)\n"
     "edge_hi, edge_lo = edge_hi - h, edge_lo - l\n"
     "if edge_lo < 0 then edge_hi, edge_lo = edge_hi - 1, edge_lo + TWO32 end\n"
     "if edge_hi < 0 then edge_hi, edge_lo, count = 0, 0, 0 end\n"
     "end"},
    {Mutant::kReturnNotClamped, "  if lends then not_below_owed() end", ""},
    {Mutant::kWindowOutlived, "lease_hi, lease_lo = end_hi, end_lo\n", ""},
    {Mutant::kSetBackOutlivesWindow, "then hi, lo = end_hi, end_lo end", "then end"},
    {Mutant::kKeyDiesBeforeLease, "if lives > 0 then\n    local owed_hi, owed_lo = held(owed)",
     "if false then\n    local owed_hi, owed_lo = held(owed)"},
    {Mutant::kNeverExpires, "if hi < now_hi or hi == now_hi and lo <= now_lo then",
     "if false then"},
    {Mutant::kQueueTakesNoTime, "edge_lo = last_lo + interval_lo + now_lo",
     "edge_lo = last_lo + now_lo"},
    {Mutant::kLogRefundsAll,
     "cost, count, hit_cost = cost - taken, count - taken, hit_cost - taken",
     "count, hit_cost = count - taken, 0"},
});

}  // namespace

std::span<const MutantRow> AllMutants() { return kRows; }

std::optional<Mutant> MutantByName(std::string_view name) {
  for (const MutantRow& row : kRows) {
    if (row.name == name) return row.mutant;
  }
  return std::nullopt;
}

bool IsInScripts(Mutant mutant) {
  return std::any_of(kChanges.begin(), kChanges.end(),
                     [&](const Change& change) { return change.mutant == mutant; });
}

std::string Mutate(std::optional<Mutant> mutant, std::string_view script) {
  std::string text(script);
  for (const Change& change : kChanges) {
    if (change.mutant != mutant) continue;
    if (const size_t at = text.find(change.from); at != text.npos)
      text.replace(at, change.from.size(), change.to);
  }
  return text;
}

}  // namespace headgate::simulation
