#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/library/headgate.h"
#include "headgate/library/limiter.h"

struct headgate_limiter {
  // Null: the clock of the system.
  std::unique_ptr<headgate::base::ManualClock> clock;
  headgate::Limiter limiter;
};

namespace headgate {
namespace {

// The entries of a call, without memory of their own for the usual number.
class Entries {
 public:
  Entries(const headgate_entry* entries, size_t count) {
    valid_ = count > 0 && count <= rule::kEntriesMax && entries != nullptr;
    if (!valid_) return;
    for (size_t i = 0; i < count; ++i) {
      const auto& [key, value] = entries[i];
      valid_ = valid_ && key != nullptr && *key != '\0' && value != nullptr;
      if (valid_) entries_[i] = {entries[i].key, entries[i].value};
    }
    count_ = count;
  }
  bool valid() const { return valid_; }
  std::span<const rule::Entry> all() const { return {entries_.data(), count_}; }

 private:
  bool valid_ = false;
  size_t count_ = 0;
  std::array<rule::Entry, rule::kEntriesMax> entries_;
};

void Say(std::string_view message, char* error, size_t error_size) {
  if (error == nullptr || error_size == 0) return;
  const size_t size = std::min(message.size(), error_size - 1);
  std::memcpy(error, message.data(), size);
  error[size] = '\0';
}

void Say(const absl::Status& status, char* error, size_t error_size) {
  Say(std::string_view(status.message().data(), status.message().size()), error, error_size);
}

int ResultOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return HEADGATE_OK;
    case absl::StatusCode::kNotFound:
      return HEADGATE_NOT_FOUND;
    case absl::StatusCode::kInvalidArgument:
      return HEADGATE_INVALID;
    default:
      return HEADGATE_NOT_POSSIBLE;
  }
}

std::vector<std::string> LinesOf(const char* text) {
  std::vector<std::string> lines;
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) lines.emplace_back(line);
  }
  return lines;
}

std::vector<RuleText> FilesOf(const char* rule_file) {
  if (rule_file == nullptr) return {};
  return {{.name = "rule_file", .text = rule_file}};
}

headgate_verdict AsC(const Verdict& verdict) {
  return {.allowed = verdict.allowed ? 1 : 0,
          .limited = verdict.limited ? 1 : 0,
          .limit = verdict.limit,
          .remaining = verdict.remaining,
          .retry_after = verdict.retry_after.count(),
          .reset_after = verdict.reset_after.count(),
          .wait = verdict.wait.count()};
}

constexpr std::string_view kNoMemory = "there is no memory";

// No exception leaves the library. Only std::bad_alloc can occur.
template <typename Act>
int Guarded(const Act& act) {
  try {
    return act();
  } catch (const std::exception&) {
    return HEADGATE_NOT_POSSIBLE;
  }
}

using Ask = Verdict (Limiter::*)(std::span<const rule::Entry>, uint64_t, std::string_view);

int Answer(headgate_limiter* limiter, Ask ask, const char* domain, const Entries& entries,
           uint64_t cost, headgate_verdict* verdict) {
  if (limiter == nullptr || verdict == nullptr || domain == nullptr || *domain == '\0' ||
      !entries.valid()) {
    return HEADGATE_INVALID;
  }
  return Guarded([&] {
    *verdict = AsC((limiter->limiter.*ask)(entries.all(), cost, domain));
    return HEADGATE_OK;
  });
}

// Takes the clock, which may be null. Null after an error, which is in `error`.
headgate_limiter* Make(LimiterOptions options, std::unique_ptr<base::ManualClock> clock,
                       char* error, size_t error_size) {
  options.clock = clock.get();
  auto made = Limiter::Make(options);
  if (made.ok()) return new headgate_limiter{std::move(clock), *std::move(made)};
  Say(made.status(), error, error_size);
  return nullptr;
}

// The options of headgate_new_from.
LimiterOptions OptionsOf(const char* rules, const char* rule_file, uint64_t max_buckets,
                         const void* snapshot, size_t snapshot_size) {
  LimiterOptions options{.rules = LinesOf(rules), .files = FilesOf(rule_file)};
  if (max_buckets > 0) options.max_buckets = max_buckets;
  if (snapshot != nullptr)
    options.snapshot.assign(static_cast<const char*>(snapshot), snapshot_size);
  return options;
}

}  // namespace
}  // namespace headgate

using headgate::Entries;

extern "C" {

const char* headgate_version(void) { return HEADGATE_VERSION; }

headgate_limiter* headgate_new(const char* rules, char* error, size_t error_size) {
  return headgate_new_from(rules, nullptr, 0, nullptr, 0, error, error_size);
}

headgate_limiter* headgate_new_from(const char* rules, const char* rule_file, uint64_t max_buckets,
                                    const void* snapshot, size_t snapshot_size, char* error,
                                    size_t error_size) {
  try {
    return headgate::Make(
        headgate::OptionsOf(rules, rule_file, max_buckets, snapshot, snapshot_size), nullptr, error,
        error_size);
  } catch (const std::exception&) {
    headgate::Say(headgate::kNoMemory, error, error_size);
  }
  return nullptr;
}

headgate_limiter* headgate_new_at(int64_t now, const char* rules, const char* rule_file,
                                  uint64_t max_buckets, const void* snapshot, size_t snapshot_size,
                                  char* error, size_t error_size) {
  if (now < 0 || now > HEADGATE_TIME_MAX) {
    headgate::Say("now is not from 0 to HEADGATE_TIME_MAX", error, error_size);
    return nullptr;
  }
  try {
    auto clock =
        std::make_unique<headgate::base::ManualClock>(headgate::base::WallTime::FromNanos(now));
    return headgate::Make(
        headgate::OptionsOf(rules, rule_file, max_buckets, snapshot, snapshot_size),
        std::move(clock), error, error_size);
  } catch (const std::exception&) {
    headgate::Say(headgate::kNoMemory, error, error_size);
  }
  return nullptr;
}

int headgate_advance(headgate_limiter* limiter, int64_t nanoseconds) {
  if (limiter == nullptr || nanoseconds < 0) return HEADGATE_INVALID;
  if (limiter->clock == nullptr) return HEADGATE_NOT_POSSIBLE;
  if (nanoseconds > HEADGATE_TIME_MAX - limiter->clock->WallNow().ns) return HEADGATE_INVALID;
  limiter->clock->Advance(headgate::base::Duration(nanoseconds));
  return HEADGATE_OK;
}

void headgate_free(headgate_limiter* limiter) { delete limiter; }

int headgate_check(headgate_limiter* limiter, const headgate_entry* entries, size_t count,
                   uint64_t cost, headgate_verdict* verdict) {
  return headgate_check_in(limiter, "default", entries, count, cost, verdict);
}

int headgate_check_in(headgate_limiter* limiter, const char* domain, const headgate_entry* entries,
                      size_t count, uint64_t cost, headgate_verdict* verdict) {
  constexpr headgate::Ask kCheck = &headgate::Limiter::Check;
  return headgate::Answer(limiter, kCheck, domain, Entries(entries, count), cost, verdict);
}

int headgate_check_all(headgate_limiter* limiter, const char* domain,
                       const headgate_descriptor* descriptors, size_t count,
                       headgate_verdict* verdicts) {
  if (limiter == nullptr || domain == nullptr || *domain == '\0' || descriptors == nullptr ||
      verdicts == nullptr || count == 0 || count > headgate::rule::kDescriptorsMax) {
    return HEADGATE_INVALID;
  }
  return headgate::Guarded([&] {
    std::vector<Entries> entries;
    std::vector<headgate::rule::Descriptor> asked;
    entries.reserve(count);  // so that the spans of `asked` stay valid
    for (size_t i = 0; i < count; ++i) {
      const Entries& of_this = entries.emplace_back(descriptors[i].entries, descriptors[i].count);
      if (!of_this.valid()) return static_cast<int>(HEADGATE_INVALID);
      asked.push_back({.entries = of_this.all(), .cost = descriptors[i].cost});
    }
    const auto answers = limiter->limiter.CheckAll(asked, domain);
    if (!answers.ok()) return headgate::ResultOf(answers.status());
    std::transform(answers->begin(), answers->end(), verdicts, headgate::AsC);
    return static_cast<int>(HEADGATE_OK);
  });
}

int headgate_peek(headgate_limiter* limiter, const char* domain, const headgate_entry* entries,
                  size_t count, uint64_t cost, headgate_verdict* verdict) {
  return headgate::Answer(limiter, &headgate::Limiter::Peek, domain, Entries(entries, count), cost,
                          verdict);
}

int headgate_refund(headgate_limiter* limiter, const char* domain, const headgate_entry* entries,
                    size_t count, uint64_t cost) {
  const Entries descriptor(entries, count);
  if (limiter == nullptr || domain == nullptr || !descriptor.valid()) return HEADGATE_INVALID;
  return headgate::Guarded(
      [&] { return headgate::ResultOf(limiter->limiter.Refund(descriptor.all(), cost, domain)); });
}

int headgate_reset(headgate_limiter* limiter, const char* domain, const headgate_entry* entries,
                   size_t count) {
  const Entries descriptor(entries, count);
  if (limiter == nullptr || domain == nullptr || !descriptor.valid()) return HEADGATE_INVALID;
  return headgate::Guarded(
      [&] { return headgate::ResultOf(limiter->limiter.Reset(descriptor.all(), domain)); });
}

int headgate_set_rules(headgate_limiter* limiter, const char* rules, const char* rule_file,
                       char* error, size_t error_size) {
  if (limiter == nullptr) return HEADGATE_INVALID;
  return headgate::Guarded([&] {
    const absl::Status status =
        limiter->limiter.SetRules(headgate::LinesOf(rules), headgate::FilesOf(rule_file));
    if (!status.ok()) headgate::Say(status, error, error_size);
    return headgate::ResultOf(status);
  });
}

void headgate_maintain(headgate_limiter* limiter) {
  if (limiter != nullptr) limiter->limiter.Maintain();
}

int headgate_snapshot(headgate_limiter* limiter, void* buffer, size_t capacity, size_t* size) {
  if (limiter == nullptr || size == nullptr || (buffer == nullptr && capacity > 0))
    return HEADGATE_INVALID;
  return headgate::Guarded([&] {
    const std::string bytes = limiter->limiter.Snapshot();
    *size = bytes.size();
    if (bytes.size() > capacity) return static_cast<int>(HEADGATE_TOO_SMALL);
    std::memcpy(buffer, bytes.data(), bytes.size());
    return static_cast<int>(HEADGATE_OK);
  });
}

}  // extern "C"
