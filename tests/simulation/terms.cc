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
     "a primary gets a new replication id because its first replica is attached", Adds::kNothing},
    {Fault::kSlotMoved, "a slot moves between live primaries", Adds::kNothing},
    {Fault::kFailover, "a replica that lacks the last writes takes over", Adds::kLostEnd},
    {Fault::kRestartFromFile, "the store restarts from a file", Adds::kLostEnd},
    {Fault::kEmptyRestart, "the store restarts empty", Adds::kLostEnd},
    {Fault::kFlush, "FLUSHALL, DEL or eviction of a live key, each time", Adds::kCapacity},
    {Fault::kReset, "a reset, each time", Adds::kCapacity},
    {Fault::kSecondServer, "a replaced primary goes on answering some instances for D",
     Adds::kSecondBucket},
    {Fault::kClockForward, "the store's clock is set forward by δ", Adds::kStep},
    {Fault::kClockBack, "the store's clock is set back", Adds::kWindow},
    {Fault::kOutageDeny, "the store cannot be asked, `deny`", Adds::kNothing},
    {Fault::kOutageLocal, "the store cannot be asked for D, `local`", Adds::kOutage},
    {Fault::kOutageAllow, "the store cannot be asked, `allow`", Adds::kEverything},
    {Fault::kLimitChange, "a limit changes, even into another kind", Adds::kLargerOfBoth},
});

}  // namespace

std::span<const Term> AllTerms() { return kTerms; }

Adds TermOf(Fault fault) { return kTerms[static_cast<size_t>(fault)].adds; }

std::string_view Sentence(Adds adds) {
  switch (adds) {
    case Adds::kNothing:
      return "nothing";
    case Adds::kLostEnd:
      return "what was admitted or leased in the lost end of the history, at most one capacity; "
             "then as an outage of one ttl while the shard learns";
    case Adds::kCapacity:
      return "one capacity";
    case Adds::kSecondBucket:
      return "rate · D and one capacity, in addition to the failover; for windows, one limit for "
             "each window in D";
    case Adds::kStep:
      return "rate · δ, at most one capacity; for windows, one limit";
    case Adds::kWindow:
      return "nothing for buckets; for windows, one limit";
    case Adds::kOutage:
      return "one capacity (or one request for each instance, if that is more) and rate · D, over "
             "all instances; an instance that starts during the outage gets its share again. For "
             "calendar windows and logs: one capacity per window or period, in all outages "
             "together. For queues: also one request for each instance, which leaves at once";
    case Adds::kEverything:
      return "everything";
    case Adds::kLargerOfBoth:
      return "nothing beyond the larger of both limits, which applies until one ttl after the last "
             "instance has learned of the change";
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
