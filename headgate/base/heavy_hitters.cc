#include "headgate/base/heavy_hitters.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/text.h"

namespace headgate::base {
namespace {

// A client may state any cost. A sum that does not fit stays at the largest number.
void AddTo(uint64_t& sum, uint64_t more) {
  if (__builtin_add_overflow(sum, more, &sum)) sum = UINT64_MAX;
}

}  // namespace

HeavyHitters::HeavyHitters(const Options& options)
    : by_(options.by),
      keys_(options.keys),
      counters_(std::max<size_t>(1, options.counters)),
      heap_(counters_.size()) {
  Clear();
}

uint64_t HeavyHitters::WeightOf(const Request& request) const {
  switch (by_) {
    case By::kRequests:
      return 1;
    case By::kDenials:
      return request.allowed ? 0 : 1;
    case By::kCost:
      return request.cost;
  }
  return 0;
}

void HeavyHitters::Add(const Hash128& hash, std::string_view key, const Request& request) {
  const uint64_t weight = WeightOf(request);
  const auto found = places_.find(hash);
  if (found == places_.end() && weight == 0) return;
  Counter& counter = found != places_.end() ? counters_[found->second] : Assign(hash, key);
  (request.allowed ? counter.allowed : counter.denied) += 1;
  AddTo(counter.cost, request.cost);
  counter.label = request.label;
  AddTo(counter.count, weight);
  AddTo(total_, weight);
  SinkFrom(counter.place);
}

HeavyHitters::Counter& HeavyHitters::Assign(const Hash128& hash, std::string_view key) {
  const uint32_t index = heap_.front();
  const uint64_t count = counters_[index].count;
  if (count > 0) places_.erase(counters_[index].hash);
  places_.emplace(hash, index);
  Counter& counter = counters_[index];
  counter = {.hash = hash, .count = count, .error = count, .place = counter.place};
  if (keys_ == Keys::kClear) {
    counter.key_bytes = static_cast<uint32_t>(std::min(key.size(), kKeyBytesMax));
    std::copy_n(key.data(), counter.key_bytes, counter.key.data());
  }
  return counter;
}

void HeavyHitters::SinkFrom(uint32_t place) {
  const uint32_t index = heap_[place];
  const uint64_t count = counters_[index].count;
  while (true) {
    uint32_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && CountAt(child + 1) < CountAt(child)) ++child;
    if (CountAt(child) >= count) break;
    heap_[place] = heap_[child];
    counters_[heap_[place]].place = place;
    place = child;
  }
  heap_[place] = index;
  counters_[index].place = place;
}

std::string HeavyHitters::KeyOf(const Counter& counter) const {
  if (keys_ == Keys::kClear) return {counter.key.data(), counter.key_bytes};
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4)
    digits.push_back(kHexDigits[counter.hash.high >> shift & 15]);
  return digits;
}

// The order of the answers.
bool HeavyHitters::IsBefore(const Counter& a, const Counter& b) {
  return std::tie(b.count, a.error, a.hash.high, a.hash.low) <
         std::tie(a.count, b.error, b.hash.high, b.hash.low);
}

std::vector<HeavyHitters::Hitter> HeavyHitters::Top(size_t count) const {
  std::vector<const Counter*> order;
  order.reserve(counters_.size());
  for (const Counter& counter : counters_) {
    if (counter.count > 0) order.push_back(&counter);
  }
  count = std::min(count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(),
                    [](const Counter* a, const Counter* b) { return IsBefore(*a, *b); });
  std::vector<Hitter> hitters;
  hitters.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const Counter& counter = *order[i];
    hitters.push_back({.key = KeyOf(counter),
                       .count = counter.count,
                       .error = counter.error,
                       .allowed = counter.allowed,
                       .denied = counter.denied,
                       .cost = counter.cost,
                       .label = counter.label});
  }
  return hitters;
}

void HeavyHitters::Merge(const HeavyHitters& other) {
  HEADGATE_CHECK(other.by_ == by_ && other.keys_ == keys_ &&
                 other.counters_.size() == counters_.size());
  AddTo(total_, other.total_);
  if (other.places_.empty()) return;
  std::vector<Counter> all;
  all.reserve(places_.size() + other.places_.size());
  for (const Counter& counter : counters_) {
    if (counter.count == 0) continue;
    Counter& both = all.emplace_back(counter);
    const auto there = other.places_.find(counter.hash);
    if (there == other.places_.end()) {
      AddTo(both.count, other.missed_most());
      AddTo(both.error, other.missed_most());
      continue;
    }
    const Counter& second = other.counters_[there->second];
    AddTo(both.count, second.count);
    AddTo(both.error, second.error);
    both.allowed += second.allowed;
    both.denied += second.denied;
    AddTo(both.cost, second.cost);
    both.label = second.label;
  }
  for (const Counter& counter : other.counters_) {
    if (counter.count == 0 || places_.contains(counter.hash)) continue;
    Counter& both = all.emplace_back(counter);
    AddTo(both.count, missed_most());
    AddTo(both.error, missed_most());
  }
  std::sort(all.begin(), all.end(), IsBefore);
  all.resize(counters_.size());  // cuts, or adds empty ones
  counters_ = std::move(all);
  IndexCounters();
}

// Restores the heap and the places of counters that are in descending order.
void HeavyHitters::IndexCounters() {
  // A large table gives back its memory. Twice the room, so that removals never make it grow.
  places_.clear();
  places_.reserve(2 * counters_.size());
  const auto size = static_cast<uint32_t>(counters_.size());
  for (uint32_t i = 0; i < size; ++i) {
    counters_[i].place = size - 1 - i;
    heap_[counters_[i].place] = i;
    if (counters_[i].count > 0) places_.emplace(counters_[i].hash, i);
  }
}

void HeavyHitters::Clear() {
  total_ = 0;
  counters_.assign(counters_.size(), {});
  IndexCounters();
}

}  // namespace headgate::base
