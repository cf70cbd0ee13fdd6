// The set of series of headgate_decisions_total, and the choice of the series for a decision.
//
// A row is a pair (domain, rule label). A series is a row with an outcome, and is created by its
// first decision. There are at most kSeriesMax series. Decisions that would need a new series
// beyond that are counted under {domain="other", rule="other"}, so the sum over all series is
// always the number of decisions. A series is kept until the process ends, even if its rule is
// removed: counters never decrease, and a rule that returns continues its old counters.
//
// Values of clients (detailed_metric, value_to_metric) create at most kDetailRowsMax rows, so they
// cannot displace the rules. Further values are counted under the label of their rule.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/hash.h"
#include "headgate/limiter/observer.h"
#include "headgate/observe/detail_label.h"

namespace headgate::observe {

class SeriesTable {
 public:
  static constexpr uint32_t kSeriesMax = 2'000;
  static constexpr uint32_t kDetailRowsMax = 500;
  // The most labels ever known. This exceeds the largest rule set that any test loads, so each of
  // its rules can get a series when it has traffic.
  static constexpr uint32_t kRowsMax = 1u << 17;
  static constexpr uint32_t kOtherRow = 0;

  // Counters are numbered: series first, then one counter for each outcome of `other`.
  using Counter = uint32_t;
  static constexpr uint32_t kCounterCount = kSeriesMax + limiter::kOutcomeCount;

  struct Name {
    std::string domain;
    std::string rule;
  };
  struct Series {
    Counter counter;
    Name name;
    limiter::Outcome outcome;
  };

  explicit SeriesTable(const base::HashSecret& secret);
  ~SeriesTable();
  SeriesTable(const SeriesTable&) = delete;
  SeriesTable& operator=(const SeriesTable&) = delete;

  // The row of a rule. Also registers the domain, so that DomainRow finds it. kOtherRow if the
  // table is full.
  uint32_t AddRule(std::string_view domain, std::string_view label);

  // The row for descriptors of this domain that no rule matched. kOtherRow if no rule has this
  // domain. Lock-free.
  uint32_t DomainRow(std::string_view domain) const;

  // The row of a label made from a client's values. Locks and allocates only when the label is seen
  // for the first time. Empty if the label is new and kDetailRowsMax rows exist already.
  std::optional<uint32_t> DetailRow(std::string_view domain, const DetailLabel& label);

  // The counter of a series. Locks only when the series is created.
  Counter CounterOf(uint32_t row, limiter::Outcome outcome) {
    if (row != kOtherRow) {
      const uint16_t counter =
          RowAt(row).counters[static_cast<size_t>(outcome)].load(std::memory_order_acquire);
      if (counter != 0) return counter - 1u;
    }
    return Claim(row, outcome);
  }
  static bool IsOther(Counter counter) { return counter >= kSeriesMax; }

  uint32_t series_count() const { return series_count_.load(std::memory_order_relaxed); }
  // All series in order of creation, then `other`.
  std::vector<Series> List() const;

 private:
  static constexpr uint32_t kChunk = 1024;
  struct Row {
    // Counter + 1; 0: no series yet.
    std::array<std::atomic<uint16_t>, limiter::kOutcomeCount> counters{};
  };
  // Rows by a hash of their text: open addressing, at most half full, without removal.
  struct Known {
    std::atomic<uint32_t> row{0};  // 0: free. Stored after the hash.
    base::Hash128 hash{};
  };
  static constexpr uint32_t kKnownSize = 4'096;
  static constexpr uint32_t kDomainsMax = kKnownSize / 2 - kDetailRowsMax;

  Row& RowAt(uint32_t row) const {
    return chunks_[row / kChunk].load(std::memory_order_acquire)[row % kChunk];
  }
  Counter Claim(uint32_t row, limiter::Outcome outcome);
  uint32_t Find(const base::Hash128& hash) const;
  // Requires the mutex.
  uint32_t EnsureRow(std::string_view domain, std::string_view label);
  void Remember(const base::Hash128& hash, uint32_t row);

  const base::HashSecret secret_;
  // Chunks are never moved, and are freed only with the table.
  std::array<std::atomic<Row*>, kRowsMax / kChunk> chunks_{};
  std::unique_ptr<Known[]> known_;
  std::atomic<uint32_t> series_count_{0};
  std::atomic<uint32_t> detail_count_{0};

  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, uint32_t> rows_;  // by domain + NUL + label
  std::vector<Name> names_;                          // by row
  struct Owner {
    uint32_t row;
    limiter::Outcome outcome;
  };
  std::vector<Owner> owners_;  // by counter
  uint32_t domain_count_ = 0;
};

}  // namespace headgate::observe
