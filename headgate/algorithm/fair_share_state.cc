#include "headgate/algorithm/fair_share_state.h"

#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;

constexpr uint8_t kVersion = 4;
constexpr uint8_t kVersionFirst = 1;
constexpr uint8_t kVersionOfRoots = 2;
constexpr uint8_t kVersionOfWholeClaims = 3;
// The largest pace of a client: 64 times the largest share; in the second version, three roots of
// that.
constexpr int64_t kPaceOwnMax = int64_t{1} << 38;
constexpr int64_t kPaceOwnMaxOfRoots = int64_t{1} << 32;
// Twice the largest share of each client, in units of 1/kSteps.
constexpr uint64_t kLateSumMax =
    2 * kFairCapacityMax * FairSharePool::kSteps * uint64_t{kFairClientsMax};
// The largest number of a cycle, far away from overflow.
constexpr uint64_t kNumberMax = uint64_t{1} << 62;

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  template <typename T>
  void Number(const T& value, uint64_t /*max*/) {
    uint64_t left = static_cast<uint64_t>(value);
    for (; left >= 0x80; left >>= 7) out_.push_back(static_cast<char>(left | 0x80));
    out_.push_back(static_cast<char>(left));
  }
  void Time(const Instant& time) { Number(time.ns, 0); }
  void Span(const Duration& span) { Number(span.count(), 0); }
  // A number from −max to max.
  void Signed(const int64_t& value, int64_t max) { Number(value + max, 0); }
  void Text(std::string_view text, size_t /*max*/) {
    Number(text.size(), 0);
    out_.append(text);
  }

 private:
  std::string& out_;
};

// Returns 0 for whatever cannot be read, and complete() is false from then on.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}

  template <typename T>
  void Number(T& value, uint64_t max) {
    const uint64_t number = Next();
    complete_ = complete_ && number <= max;
    value = static_cast<T>(complete_ ? number : 0);
  }
  void Time(Instant& time) { Number(time.ns, static_cast<uint64_t>(base::kInstantMax.ns)); }
  void Span(Duration& span) {
    int64_t ns = 0;
    Number(ns, static_cast<uint64_t>(base::kDurationMax.count()));
    span = Duration(ns);
  }
  void Signed(int64_t& value, int64_t max) {
    uint64_t number = static_cast<uint64_t>(max);
    Number(number, 2 * static_cast<uint64_t>(max));
    value = complete_ ? static_cast<int64_t>(number) - max : 0;
  }
  void Text(std::string& text, size_t max) {
    size_t size = 0;
    Number(size, max);
    if (size > in_.size()) complete_ = false;
    if (!complete_) return;
    text = in_.substr(0, size);
    in_.remove_prefix(size);
  }

  bool complete() const { return complete_; }
  bool at_end() const { return complete_ && in_.empty(); }

 private:
  uint64_t Next() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && !in_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(in_.front());
      in_.remove_prefix(1);
      const uint64_t bits = byte & 0x7f;
      // The last byte is not 0, so that a number has one form.
      if ((shift == 63 && bits > 1) || (bits == 0 && byte == 0 && shift > 0)) break;
      number |= bits << shift;
      if (byte < 0x80) return number;
    }
    complete_ = false;
    return 0;
  }

  std::string_view in_;
  bool complete_ = true;
};

}  // namespace

template <typename Coder, typename Options>
void FairShareState::CodeSettings(Coder& coder, Options& options, uint8_t version) {
  coder.Number(options.capacity, kFairCapacityMax);
  coder.Span(options.cycle);
  coder.Number(options.reservation.numerator, kFairRatioDenominatorMax);
  coder.Number(options.reservation.denominator, kFairRatioDenominatorMax);
  coder.Number(options.on_new_client, static_cast<uint64_t>(OnNewClient::kRestart));
  coder.Number(options.reclaim, static_cast<uint64_t>(Reclaim::kAtOnce));
  coder.Span(options.minimum_cycle);
  coder.Number(options.leave_after_cycles, std::numeric_limits<uint32_t>::max());
  coder.Number(options.clients_max, kFairClientsMax);
  if (version == kVersionFirst) return;
  coder.Number(options.lending, static_cast<uint64_t>(Lending::kMaxMin));
  coder.Number(options.is_paced, 1);
}

template <typename Coder, typename Pool>
void FairShareState::CodePool(Coder& coder, Pool& pool, uint8_t version) {
  CodeSettings(coder, pool.options_, version);
  coder.Number(pool.capacity_next_, kFairCapacityMax);
  coder.Time(pool.seen_);
  coder.Number(pool.cycle_.number, kNumberMax);
  coder.Time(pool.cycle_.start);
  coder.Time(pool.cycle_.end);
  coder.Span(pool.cycle_.last_length);
  coder.Number(pool.cycle_.last_end, kCycleEndKinds - 1);
  for (auto& count : pool.cycle_.ends) coder.Number(count, kNumberMax);
  coder.Number(pool.full_since_, kNumberMax);
  coder.Number(pool.full_before_, kNumberMax);
  coder.Time(pool.due_);
  coder.Number(pool.budget_, kFairCapacityMax);
  coder.Number(pool.used_, kFairCapacityMax);
  if (version == kVersionFirst) return;
  coder.Number(pool.step_, FairSharePool::kSteps - 1);
  coder.Signed(pool.pace_, static_cast<int64_t>(kFairCapacityMax));
  coder.Number(pool.needs_division_, 1);
  if (version <= kVersionOfWholeClaims) return;
  coder.Number(pool.late_sum_, kLateSumMax);
}

template <typename Coder, typename AnyClient>
void FairShareState::CodeClient(Coder& coder, AnyClient& client, uint8_t version) {
  coder.Text(client.name, kNameBytesMax);
  coder.Number(client.weight, kFairWeightMax);
  coder.Number(client.even, kFairCapacityMax);
  coder.Number(client.even_up, kFairCapacityMax);
  coder.Number(client.capacity, kFairCapacityMax);
  coder.Number(client.used, kFairCapacityMax);
  coder.Number(client.demand, kFairCapacityMax);
  coder.Number(client.demand_last, kFairCapacityMax);
  coder.Number(client.counts_at_least_even, 1);
  coder.Span(client.idle);
  if (version == kVersionFirst) return;
  coder.Time(client.asked);
  coder.Signed(client.credit, kFairCreditUnit);
  coder.Signed(client.credit_next, kFairCreditUnit);
  constexpr uint64_t kShareMax = kFairCapacityMax * FairSharePool::kSteps;
  const uint64_t claim_max = version <= kVersionOfWholeClaims ? kFairCapacityMax : kShareMax;
  coder.Number(client.claim, claim_max);
  coder.Number(client.late, kShareMax);
  for (auto& late : client.late_now) coder.Number(late, kFairCapacityMax);
  for (auto& late : client.late_at) coder.Number(late, claim_max);
  const bool of_roots = version == kVersionOfRoots;
  coder.Signed(client.pace, of_roots ? kPaceOwnMaxOfRoots : kPaceOwnMax);
  coder.Number(client.cycles, of_roots ? 1 : FairSharePool::kLateCycles);
  coder.Number(client.asked_once, 1);
  coder.Number(client.obeys, 1);
  coder.Number(client.came_back, 1);
  coder.Number(client.insisted, 1);
  coder.Number(client.told, static_cast<uint64_t>(FairSharePool::Told::kDenied));
  if (client.told == FairSharePool::Told::kNothing) return;
  coder.Time(client.told_at);
  coder.Time(client.told_until);
}

void FairShareState::Append(const FairSharePool& pool, std::string& out) {
  out.push_back(static_cast<char>(kVersion));
  Writer writer(out);
  CodePool(writer, pool, kVersion);
  writer.Number(pool.options_next_.has_value(), 1);
  if (pool.options_next_) CodeSettings(writer, *pool.options_next_, kVersion);
  writer.Number(pool.clients_.size(), kFairClientsMax);
  for (const Client& client : pool.clients_) CodeClient(writer, client, kVersion);
}

std::optional<FairSharePool> FairShareState::Parse(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto version = static_cast<uint8_t>(bytes.front());
  if (version < kVersionFirst || version > kVersion) return std::nullopt;
  Reader reader(bytes.substr(1));
  FairSharePool pool{FairShareOptions{}};
  CodePool(reader, pool, version);
  bool has_next = false;
  reader.Number(has_next, 1);
  if (has_next) CodeSettings(reader, pool.options_next_.emplace(), version);
  size_t count = 0;
  reader.Number(count, kFairClientsMax);
  for (size_t i = 0; i < count && reader.complete(); ++i) {
    Client& client = pool.clients_.emplace_back();
    CodeClient(reader, client, version);
    // In this version the field said whether the client was new.
    if (version == kVersionOfRoots)
      client.cycles = client.cycles > 0 ? 0 : FairSharePool::kLateCycles;
    if (version <= kVersionOfWholeClaims) {
      client.claim *= FairSharePool::kSteps;
      for (uint64_t& late : client.late_at) late *= FairSharePool::kSteps;
    }
    if (!pool.client_index_.emplace(client.name, i).second) return std::nullopt;
  }
  if (!reader.at_end() || !IsSound(pool) || !AreSound(pool)) return std::nullopt;
  pool.FindWeights();
  if (version <= kVersionOfWholeClaims) pool.FindLateSum();
  pool.KeepAll();
  return pool;
}

// The arithmetic of decisions relies on this.
bool FairShareState::IsSound(const FairSharePool& pool) {
  const auto are_valid = [](const FairShareOptions& options) {
    return options.Validate().ok() && options.minimum_cycle.count() > 0;
  };
  if (!are_valid(pool.options_)) return false;
  if (pool.options_next_ && !are_valid(*pool.options_next_)) return false;
  const CycleView& cycle = pool.cycle_;
  const bool times_are_in_order =
      cycle.start <= pool.seen_ && cycle.start <= cycle.end && cycle.end <= pool.due_ &&
      pool.due_ - cycle.start <= pool.options_.cycle && pool.due_.ns >= pool.options_.cycle.count();
  return times_are_in_order && pool.capacity_next_ > 0 && pool.budget_ <= pool.options_.capacity &&
         pool.full_before_ <= pool.full_since_ && pool.full_since_ <= cycle.number;
}

bool FairShareState::AreSound(const FairSharePool& pool) {
  uint64_t capacities = 0;
  for (const Client& client : pool.clients_) {
    if (client.name.empty() || client.weight == 0) return false;
    if (client.even_up < client.even || client.even_up - client.even > 1) return false;
    if (client.told_until < client.told_at) return false;
    capacities += client.capacity;
  }
  return pool.clients_.empty() || capacities == pool.options_.capacity;
}

}  // namespace headgate::algorithm
