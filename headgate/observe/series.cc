#include "headgate/observe/series.h"

#include "headgate/rule/quote.h"

namespace headgate::observe {
namespace {

// Longer labels are cut, because clients can send values of any length.
constexpr size_t kLabelBytesMax = 128;

// A rule's own label is never empty.
constexpr std::string_view kNoRule = "";

// Free of control characters, valid UTF-8, and not too long.
std::string LabelText(std::string_view text) {
  // Printable writes at least one byte for each byte that it reads, so this input suffices.
  const bool cut = text.size() > kLabelBytesMax;
  std::string label = rule::Printable(text.substr(0, kLabelBytesMax + 4));
  if (!cut && label.size() <= kLabelBytesMax) return label;
  size_t end = std::min(label.size(), kLabelBytesMax);
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xc0) == 0x80) --end;
  label.resize(end);
  return label + "…";
}

}  // namespace

SeriesTable::SeriesTable(const base::HashSecret& secret)
    : secret_(secret), known_(std::make_unique<Known[]>(kKnownSize)) {
  chunks_[0].store(new Row[kChunk], std::memory_order_relaxed);
  names_.push_back({"other", "other"});
  owners_.reserve(kSeriesMax);
}

SeriesTable::~SeriesTable() {
  for (auto& chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

uint32_t SeriesTable::AddRule(std::string_view domain, std::string_view label) {
  base::KeyHasher hasher(secret_, base::KeyKind::kRaw);
  hasher.Add(domain);
  const base::Hash128 domain_hash = hasher.Finish();

  const std::lock_guard lock(mutex_);
  if (Find(domain_hash) == kOtherRow && domain_count_ < kDomainsMax) {
    if (const uint32_t row = EnsureRow(LabelText(domain), kNoRule); row != kOtherRow) {
      Remember(domain_hash, row);
      ++domain_count_;
    }
  }
  return EnsureRow(LabelText(domain), LabelText(label));
}

uint32_t SeriesTable::DomainRow(std::string_view domain) const {
  base::KeyHasher hasher(secret_, base::KeyKind::kRaw);
  hasher.Add(domain);
  return Find(hasher.Finish());
}

std::optional<uint32_t> SeriesTable::DetailRow(std::string_view domain, const DetailLabel& label) {
  base::KeyHasher hasher(secret_, base::KeyKind::kPart);
  hasher.Add(domain);
  uint32_t has_value = 0;
  for (size_t i = 0; i < label.step_count; ++i) {
    hasher.Add(label.steps[i].text);
    hasher.Add(label.steps[i].value.value_or(""));
    has_value |= uint32_t{label.steps[i].value.has_value()} << i;
  }
  hasher.Add({reinterpret_cast<const char*>(&has_value), sizeof(has_value)});
  const base::Hash128 hash = hasher.Finish();
  if (const uint32_t row = Find(hash); row != kOtherRow) return row;
  if (detail_count_.load(std::memory_order_relaxed) >= kDetailRowsMax) return std::nullopt;

  const std::lock_guard lock(mutex_);
  if (const uint32_t row = Find(hash); row != kOtherRow) return row;  // another thread was faster
  if (detail_count_.load(std::memory_order_relaxed) >= kDetailRowsMax) return std::nullopt;
  const uint32_t row = EnsureRow(LabelText(domain), LabelText(label.Text(2 * kLabelBytesMax)));
  if (row == kOtherRow) return std::nullopt;
  Remember(hash, row);
  detail_count_.fetch_add(1, std::memory_order_relaxed);
  return row;
}

SeriesTable::Counter SeriesTable::Claim(uint32_t row, limiter::Outcome outcome) {
  const Counter other = kSeriesMax + static_cast<uint32_t>(outcome);
  if (row == kOtherRow || series_count() >= kSeriesMax) return other;
  const std::lock_guard lock(mutex_);
  std::atomic<uint16_t>& counter = RowAt(row).counters[static_cast<size_t>(outcome)];
  if (const uint16_t claimed = counter.load(std::memory_order_relaxed); claimed != 0)
    return claimed - 1u;
  if (owners_.size() >= kSeriesMax) return other;
  owners_.push_back({row, outcome});
  series_count_.store(static_cast<uint32_t>(owners_.size()), std::memory_order_relaxed);
  counter.store(static_cast<uint16_t>(owners_.size()), std::memory_order_release);
  return static_cast<Counter>(owners_.size() - 1);
}

std::vector<SeriesTable::Series> SeriesTable::List() const {
  std::vector<Series> list;
  const std::lock_guard lock(mutex_);
  list.reserve(owners_.size() + limiter::kOutcomeCount);
  for (size_t i = 0; i < owners_.size(); ++i) {
    list.push_back({static_cast<Counter>(i), names_[owners_[i].row], owners_[i].outcome});
  }
  for (uint32_t i = 0; i < limiter::kOutcomeCount; ++i) {
    list.push_back({kSeriesMax + i, names_[kOtherRow], static_cast<limiter::Outcome>(i)});
  }
  return list;
}

uint32_t SeriesTable::Find(const base::Hash128& hash) const {
  for (uint64_t at = hash.low;; ++at) {
    const Known& known = known_[at % kKnownSize];
    const uint32_t row = known.row.load(std::memory_order_acquire);
    if (row == kOtherRow || known.hash == hash) return row;
  }
}

void SeriesTable::Remember(const base::Hash128& hash, uint32_t row) {
  uint64_t at = hash.low;
  while (known_[at % kKnownSize].row.load(std::memory_order_relaxed) != kOtherRow) ++at;
  known_[at % kKnownSize].hash = hash;
  known_[at % kKnownSize].row.store(row, std::memory_order_release);
}

uint32_t SeriesTable::EnsureRow(std::string_view domain, std::string_view label) {
  std::string text(domain);
  text += '\0';
  text += label;
  if (const auto found = rows_.find(text); found != rows_.end()) return found->second;
  if (names_.size() >= kRowsMax) return kOtherRow;
  const auto row = static_cast<uint32_t>(names_.size());
  if (row % kChunk == 0) chunks_[row / kChunk].store(new Row[kChunk], std::memory_order_release);
  names_.push_back({std::string(domain), std::string(label)});
  rows_.emplace(std::move(text), row);
  return row;
}

}  // namespace headgate::observe
