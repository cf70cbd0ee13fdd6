// The owners of limits. Each rule is a class of its own, all limits that clients bring form one
// class, and all counters another. Classes share memory such that none can displace another
// (memory.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace headgate::store {

// A value that is the same in every run of the program, so a snapshot can store it.
class LimitOwner {
 public:
  // The owner of all limits that come with requests.
  static constexpr LimitOwner Clients() { return LimitOwner(0); }
  // `identity` distinguishes the rule from all others (hashed by FNV-1a, Fowler, Noll and Vo). Two
  // rules with equal hashes share their class, and nothing else.
  static constexpr LimitOwner Rule(std::string_view identity) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return LimitOwner(hash < kFirstHash ? hash + kFirstHash : hash);
  }
  // All rules for which no separate class is left.
  static constexpr LimitOwner FurtherRules() { return LimitOwner(1); }
  // All counters. They have a class of their own because a counter may never expire: such counters
  // would displace every limit of clients.
  static constexpr LimitOwner Counters() { return LimitOwner(2); }

  static constexpr LimitOwner FromNumber(uint64_t number) { return LimitOwner(number); }
  constexpr uint64_t number() const { return number_; }
  // Whether the class is not that of a rule.
  constexpr bool is_of_clients() const { return *this == Clients() || *this == Counters(); }

  constexpr bool operator==(const LimitOwner&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LimitOwner& owner) {
    return H::combine(std::move(h), owner.number_);
  }

 private:
  static constexpr uint64_t kFirstHash = 3;  // smaller numbers are reserved

  explicit constexpr LimitOwner(uint64_t number) : number_(number) {}
  uint64_t number_;
};

// The memory that a class holds in a store. On a cache line of its own, because each insertion
// writes to it.
struct alignas(64) LimitClass {
  LimitOwner owner = LimitOwner::Clients();
  uint32_t limits = 0;  // interned limits; guarded by the table's mutex
  std::atomic<uint64_t> buckets{0};
  std::atomic<uint64_t> hit_blocks{0};
  // Summed over all event loops, if instances share a store.
  std::atomic<uint64_t> lease_records{0};
};

}  // namespace headgate::store
