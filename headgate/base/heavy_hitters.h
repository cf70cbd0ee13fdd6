// The keys with the largest counts, in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi,
// "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005).
//
// With m counters, and N as the sum of all weights:
//
//   count - error <= the weight of a key <= count        error <= N / m
//   each key with a weight above N / m has a counter
//
// A key without a counter takes over the smallest counter: its count begins at the old count, which
// becomes its error.
//
// Two sketches are merged into one (Agarwal et al., "Mergeable Summaries", PODS 2012): a key that
// has a counter in only one of them may have come to the other one as often as its smallest counter
// says. The m largest of all counters are kept. The bounds hold again, with N as the sum of both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/hash.h"

namespace headgate::base {

// Not thread-safe.
class HeavyHitters {
 public:
  // The weight of a request.
  enum class By : uint8_t {
    kRequests,  // 1
    kDenials,   // 1 if it is denied, else 0
    kCost       // its cost, allowed or denied
  };
  // How a key is shown: as it is, or as 16 hex digits of its hash.
  enum class Keys : uint8_t { kClear, kHashed };
  struct Options {
    By by = By::kRequests;
    Keys keys = Keys::kClear;
    size_t counters = 1024;  // 1 or more; each takes about 300 bytes
  };
  // The bytes of a key that are kept in the clear.
  static constexpr size_t kKeyBytesMax = 128;

  explicit HeavyHitters(const Options& options);

  struct Request {
    bool allowed = true;
    uint64_t cost = 1;
    uint32_t label = 0;  // of the key; its Hitter has the last one
  };
  // Counts a request of a key. `hash` is its keyed hash: with a known secret, a client could make
  // two keys share a counter. Add allocates nothing: the memory was reserved at the beginning.
  void Add(const Hash128& hash, std::string_view key, const Request& request);

  struct Hitter {
    std::string key;     // at most kKeyBytesMax bytes, as they came
    uint64_t count = 0;  // the weight, and at most `error` more
    uint64_t error = 0;
    // Since the key has its counter.
    uint64_t allowed = 0;
    uint64_t denied = 0;
    uint64_t cost = 0;
    uint32_t label = 0;

    bool operator==(const Hitter&) const = default;
  };
  // At most `count` keys, those with the largest counts first.
  std::vector<Hitter> Top(size_t count) const;

  // The sum of all weights, and the largest error that a count can have.
  uint64_t total() const { return total_; }
  uint64_t error_most() const { return total_ / counters_.size(); }

  // Adds what `other` has counted, which must have the same options.
  void Merge(const HeavyHitters& other);

  void Clear();

 private:
  struct Counter {
    Hash128 hash{};
    uint64_t count = 0;
    uint64_t error = 0;
    uint64_t allowed = 0;
    uint64_t denied = 0;
    uint64_t cost = 0;
    uint32_t label = 0;
    uint32_t place = 0;  // in heap_
    uint32_t key_bytes = 0;
    std::array<char, kKeyBytesMax> key{};
  };

  uint64_t WeightOf(const Request& request) const;
  // The smallest counter, for a key that has none yet.
  Counter& Assign(const Hash128& hash, std::string_view key);
  std::string KeyOf(const Counter& counter) const;
  // Restores the order of the heap after the count at `place` has grown.
  void SinkFrom(uint32_t place);
  uint64_t CountAt(uint32_t place) const { return counters_[heap_[place]].count; }
  // The most that a key without a counter can have: the smallest count, if all counters are taken.
  uint64_t missed_most() const { return CountAt(0); }
  static bool IsBefore(const Counter& a, const Counter& b);
  void IndexCounters();

  By by_;
  Keys keys_;
  uint64_t total_ = 0;
  std::vector<Counter> counters_;  // 0 if the counter has no key
  std::vector<uint32_t> heap_;     // of counters, the smallest count first
  struct HashOfKey {
    size_t operator()(const Hash128& key) const { return key.low; }
  };
  absl::flat_hash_map<Hash128, uint32_t, HashOfKey> places_;  // in counters_
};

}  // namespace headgate::base
