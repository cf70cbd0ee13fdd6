#include "tests/simulation/terms.h"

#include <array>

#include <fmt/format.h>

namespace headgate::simulation {
namespace {

// In the order of Fault.
constexpr auto kTerms = std::to_array<Term>({
    {Fault::kInstanceStops, "an instance dies, is paused or loses the store", Adds::kNothing},
    {Fault::kShutdown, "an instance shuts down in good order", Adds::kNothing},
    {Fault::kReplicaAttached,
     "a primary draws another replication id: its first replica is attached", Adds::kNothing},
    {Fault::kSlotMoved, "a slot moves between primaries that live", Adds::kNothing},
    {Fault::kFailover, "a replica that lacks the last writes takes over", Adds::kLostEnd},
    {Fault::kRestartFromFile, "the store restarts from a file", Adds::kLostEnd},
    {Fault::kEmptyRestart, "the store restarts empty", Adds::kLostEnd},
    {Fault::kFlush, "FLUSHALL, DEL or eviction of a live key, each time", Adds::kCapacity},
    {Fault::kReset, "a reset, each time", Adds::kCapacity},
    {Fault::kSecondServer, "a primary that was replaced goes on answering some instances for D",
     Adds::kSecondBucket},
    {Fault::kClockForward, "the store's clock is set forward by δ", Adds::kStep},
    {Fault::kClockBack, "the store's clock is set back", Adds::kWindow},
    {Fault::kOutageDeny, "the store cannot be asked, `deny`", Adds::kNothing},
    {Fault::kOutageLocal, "the store cannot be asked for D, `local`", Adds::kOutage},
    {Fault::kOutageAllow, "the store cannot be asked, `allow`", Adds::kEverything},
    {Fault::kLimitChange, "a limit changes, into whatever kind", Adds::kLargerOfBoth},
});

}  // namespace

std::span<const Term> AllTerms() { return kTerms; }

Adds TermOf(Fault fault) { return kTerms[static_cast<size_t>(fault)].adds; }

std::string_view Sentence(Adds adds) {
  switch (adds) {
    case Adds::kNothing:
      return "nothing";
    case Adds::kLostEnd:
      return "what the lost end had admitted or leased, at most one capacity; then an outage of "
             "one ttl while it is "
             "learned";
    case Adds::kCapacity:
      return "one capacity";
    case Adds::kSecondBucket:
      return "rate · D and one capacity, besides what the failover adds; each of its windows may "
             "be filled";
    case Adds::kStep:
      return "rate · δ, at most one capacity; one window's limit for windows";
    case Adds::kWindow:
      return "nothing for buckets; one window's limit for windows";
    case Adds::kOutage:
      return "one capacity (or one request of each instance, if that is more) and rate · D, over "
             "all instances; an "
             "instance that starts meanwhile has its share anew. A window of the calendar and a "
             "period of a log: one "
             "capacity in all outages together. A queue: one request of each instance besides, "
             "which goes at once";
    case Adds::kEverything:
      return "everything";
    case Adds::kLargerOfBoth:
      return "nothing beyond the larger of both limits, which holds until one ttl after the last "
             "instance knows";
  }
  return "";
}

std::string TermsTable() {
  std::string table = "| what happens | adds at most |\n| --- | --- |\n";
  for (const Term& term : kTerms)
    table += fmt::format("| {} | {} |\n", term.happens, Sentence(term.adds));
  return table;
}

}  // namespace headgate::simulation
