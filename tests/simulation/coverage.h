// Records the rare branches that a run went through. A run of many seeds has to see each of kMarks:
// the simulator cannot find bugs in branches that it does not reach.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

namespace headgate::simulation {

inline constexpr auto kMarks = std::to_array<std::string_view>({
    "a lease was renewed before it was used up",
    "a lease expired on its node with something left",
    "a lease was returned",
    "an ask timed out",
    "an ask could not be sent",
    "a grant came after its deadline",
    "an answer came twice",
    "an answer came after its call had timed out",
    "a request was denied from memory",
    "a request waited for the call of another",
    "a lease paid for what the store denied",
    "a request was refused since the store could not be asked",
    "a request was let through locally",
    "a local admission was taken from the shared bucket",
    "a lease was reported after its end",
    "a window cut a lease short",
    "a tiny lease was granted",
    "a node was paused for longer than a lease lives",
    "an instance died holding leases",
    "an instance shut down orderly",
    "the whole fleet shut down orderly",
    "the breaker refused a call",
    "the breaker let a probe through",
    "a request was let through uncounted",
    "a group of limits was let through",
    "a group of limits was denied by one of them",
    "a bucket was reset",
    "a node that was cut off spent its leases",
    "a lease expired at the store with something left",
    "a call was kept back while a history was learned",
    "the end of a history was lost",
    "the store restarted from a file",
    "the store restarted empty",
    "a slot moved",
    "a first replica was attached",
    "everything stood still for a long time",
    "a bucket was set back to the store's clock",
    "a bucket was carried over to another limit",
    "a bucket was carried over with leases",
    "a limit of another kind took over",
    "the last instant of a lease was used",
    "a request came at the very deadline",
    "the store was emptied",
    "the store's clock was set forward",
    "a request was refunded at the store",
    "a queue took nothing back",
    "a queue let something through",
    "a log let something through",
    "a limit of 0 requests was asked for",
    "a limit became one of 0 requests",
    "a limit of 0 requests became another",
    "leases were owed to a bucket that became a queue or a log",
    "a request was taken back into its lease",
    "a window began with its first hit",
    "a month or a year ended",
    "a server that had been replaced let something through",
    "two nodes held leases of one bucket",
    "all asked when a lease had been spent at its last instant",
});

class Coverage {
 public:
  void Mark(std::string_view mark) { ++seen_[mark]; }
  uint64_t Seen(std::string_view mark) const {
    const auto found = seen_.find(mark);
    return found != seen_.end() ? found->second : 0;
  }

 private:
  std::map<std::string_view, uint64_t> seen_;
};

}  // namespace headgate::simulation
