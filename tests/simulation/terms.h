// The most that each fault may add to the requests that a fleet admits. The bounds of the simulator
// use this table, and a test compares it with the table in docs/internals/leases.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headgate::simulation {

enum class Fault : uint8_t {
  kInstanceStops,
  kShutdown,
  kReplicaAttached,
  kSlotMoved,
  kFailover,
  kRestartFromFile,
  kEmptyRestart,
  kFlush,
  kReset,
  kSecondServer,
  kClockForward,
  kClockBack,
  kOutageDeny,
  kOutageLocal,
  kOutageAllow,
  kLimitChange,
};

enum class Adds : uint8_t {
  kNothing,
  kLostEnd,  // what the lost end of the history had admitted or leased, never more than one
             // capacity
  kCapacity,
  kSecondBucket,  // one capacity, and rate · D
  kStep,          // rate · δ, never more than one capacity
  kWindow,        // nothing for buckets; one window's limit for windows
  kOutage,        // one capacity and rate · D
  kEverything,
  kLargerOfBoth,
};

struct Term {
  Fault fault;
  std::string_view happens;
  Adds adds;
};

std::span<const Term> AllTerms();
Adds TermOf(Fault fault);
// The term in the words of the documentation.
std::string_view Sentence(Adds adds);
// The table in the documentation's form.
std::string TermsTable();

}  // namespace headgate::simulation
