#include "headgate/base/heavy_hitters.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "headgate/base/text.h"

namespace headgate::base {

HeavyHitters::HeavyHitters(const Options& options)
    : by_(options.by),
      keys_(options.keys),
      counters_(std::max<size_t>(1, options.counters)),
      heap_(counters_.size()) {
  // Twice the room, so that removals never make the table grow.
  places_.reserve(2 * counters_.size());
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
  counter.cost += request.cost;
  counter.count += weight;
  total_ += weight;
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

std::vector<HeavyHitters::Hitter> HeavyHitters::Top(size_t count) const {
  std::vector<const Counter*> order;
  order.reserve(counters_.size());
  for (const Counter& counter : counters_) {
    if (counter.count > 0) order.push_back(&counter);
  }
  count = std::min(count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(), [](const Counter* a, const Counter* b) {
    return std::tie(b->count, a->error, a->hash.high, a->hash.low) <
           std::tie(a->count, b->error, b->hash.high, b->hash.low);
  });
  std::vector<Hitter> hitters;
  hitters.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const Counter& counter = *order[i];
    hitters.push_back({.key = KeyOf(counter),
                       .count = counter.count,
                       .error = counter.error,
                       .allowed = counter.allowed,
                       .denied = counter.denied,
                       .cost = counter.cost});
  }
  return hitters;
}

void HeavyHitters::Clear() {
  total_ = 0;
  for (uint32_t i = 0; i < counters_.size(); ++i) {
    counters_[i] = {};
    counters_[i].place = i;
    heap_[i] = i;
  }
  places_.clear();
}

}  // namespace headgate::base
