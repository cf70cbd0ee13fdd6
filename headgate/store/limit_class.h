// Who limits belong to: each rule is a class of its own, and all limits that clients bring are one
// together. Memory is shared out between classes, so that none can push another out (memory.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace headgate::store {

// A value; the same in every run of the program, so that a snapshot can name it.
class LimitOwner {
 public:
  // Whoever brings a limit with a request.
  static constexpr LimitOwner Clients() { return LimitOwner(0); }
  // `identity` tells the rule from all others (FNV-1a, Fowler, Noll and Vo). Two rules whose hashes
  // are equal share their class, and nothing else.
  static constexpr LimitOwner Rule(std::string_view identity) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : identity) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return LimitOwner(hash < kFirstHash ? hash + kFirstHash : hash);
  }
  // All rules for which there is no class of their own any more.
  static constexpr LimitOwner FurtherRules() { return LimitOwner(1); }

  static constexpr LimitOwner FromNumber(uint64_t number) { return LimitOwner(number); }
  constexpr uint64_t number() const { return number_; }
  constexpr bool is_clients() const { return number_ == 0; }

  constexpr bool operator==(const LimitOwner&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LimitOwner& owner) {
    return H::combine(std::move(h), owner.number_);
  }

 private:
  static constexpr uint64_t kFirstHash = 2;  // what is below has a meaning

  explicit constexpr LimitOwner(uint64_t number) : number_(number) {}
  uint64_t number_;
};

// What a class holds of a store's memory. A cache line of its own: each insertion writes to it.
struct alignas(64) LimitClass {
  LimitOwner owner = LimitOwner::Clients();
  uint32_t limits = 0;  // interned ones; guarded by the table's mutex
  std::atomic<uint64_t> buckets{0};
  std::atomic<uint64_t> hit_blocks{0};
  std::atomic<uint64_t> lease_records{0};  // of all event loops, where instances share a store
};

}  // namespace headgate::store
