#include "headgate/library/limiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/random_secret.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/limiter.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"

namespace headgate {
namespace {

// Threads that can decide at the same moment without waiting for each other.
constexpr size_t kSlots = 16;

// A slot for each thread, in turn: threads that stay alive rarely meet.
size_t SlotOfThisThread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t slot = threads.fetch_add(1, std::memory_order_relaxed);
  return slot % kSlots;
}

absl::StatusOr<std::shared_ptr<const rule::RuleSet>> LoadRules(
    const std::vector<std::string>& rules, const std::vector<RuleText>& files) {
  std::vector<rule::read::RuleFile> texts;
  texts.reserve(files.size());
  for (const RuleText& file : files) texts.push_back({file.name, file.text});
  rule::read::LoadResult loaded = rule::read::LoadRules(texts, {.one_liners = rules});
  if (loaded.ok()) return std::shared_ptr<const rule::RuleSet>(std::move(loaded.rules));
  return absl::InvalidArgumentError(rule::Describe(loaded.problems));
}

// An empty key can only be a mistake. No rule can name it, so nothing would limit the request.
bool HasEmptyKey(const rule::Descriptor& descriptor) {
  return std::any_of(descriptor.entries.begin(), descriptor.entries.end(),
                     [](const rule::Entry& entry) { return entry.key.empty(); });
}

Verdict VerdictOf(const limiter::DescriptorAnswer& answer) {
  Verdict verdict{.allowed = answer.allowed(), .limited = answer.rule != nullptr};
  if (!answer.has_decision()) return verdict;
  const algorithm::Decision& decision = answer.decision;
  verdict.limit = decision.limit;
  verdict.remaining = decision.remaining;
  verdict.retry_after = decision.retry_after;
  verdict.reset_after = decision.reset_after;
  verdict.wait = decision.wait;
  return verdict;
}

}  // namespace

struct Limiter::State {
  explicit State(const LimiterOptions& options)
      : clock(options.clock != nullptr ? *options.clock : system_clock),
        limiter(options.store != nullptr ? *options.store : MakeMemory(options), nullptr) {}

  // Calls `use` with a checker and its response, which no other thread uses meanwhile.
  template <typename Use>
  auto With(const Use& use) {
    Slot& slot = slots[SlotOfThisThread()];
    const std::lock_guard lock(slot.mutex);
    if (!slot.checker) slot.checker.emplace(limiter);
    return use(*slot.checker, slot.response);
  }

  absl::Status Apply(store::Operation operation, std::span<const rule::Entry> entries,
                     uint64_t cost, std::string_view domain) {
    return With([&](limiter::Checker& checker, limiter::Response& response) -> absl::Status {
      const rule::Descriptor descriptor{.entries = entries, .cost = cost};
      const absl::Status status =
          checker.Check({.domain = domain, .descriptors = {&descriptor, 1}, .operation = operation},
                        response, clock.Now());
      if (!status.ok()) return status;
      if (!limiter::AnyRule(response)) return absl::NotFoundError("no rule applies");
      return absl::OkStatus();
    });
  }

  base::SystemClock system_clock;
  base::DisciplinedClock clock;
  std::optional<store::MemoryStore> memory;
  limiter::Limiter limiter;
  struct alignas(64) Slot {
    std::mutex mutex;
    std::optional<limiter::Checker> checker;
    limiter::Response response;
  };
  std::array<Slot, kSlots> slots;

 private:
  store::Store& MakeMemory(const LimiterOptions& options) {
    return memory.emplace(store::MemoryOptions{.max_buckets = options.max_buckets,
                                               .secret = base::RandomHashSecret()});
  }
};

Limiter::Limiter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

absl::StatusOr<Limiter> Limiter::Make(const LimiterOptions& options) {
  const uint64_t buckets = options.max_buckets;
  if (options.store == nullptr && (buckets == 0 || buckets > LimiterOptions::kBucketsMax)) {
    return absl::InvalidArgumentError(fmt::format("max_buckets is {}; it must be from 1 to {}",
                                                  buckets, LimiterOptions::kBucketsMax));
  }
  std::unique_ptr<State> made;
  try {
    made = std::make_unique<State>(options);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        fmt::format("there is no memory for max_buckets {}", buckets));
  }
  Limiter limiter(std::move(made));
  State& state = *limiter.state_;
  if (state.memory && !options.snapshot.empty()) {
    const absl::Status restored = state.memory->Restore(options.snapshot, state.clock.Now());
    if (!restored.ok()) return restored;
  }
  const absl::Status loaded = limiter.SetRules(options.rules, options.files);
  if (!loaded.ok()) return loaded;
  return limiter;
}

Verdict Limiter::Check(std::string_view key, std::string_view value, uint64_t cost) {
  const rule::Entry entry{key, value};
  return Check({&entry, 1}, cost);
}

Verdict Limiter::Check(std::span<const rule::Entry> entries, uint64_t cost,
                       std::string_view domain) {
  return Ask(store::Operation::kTake, entries, cost, domain);
}

Verdict Limiter::Peek(std::span<const rule::Entry> entries, uint64_t cost,
                      std::string_view domain) {
  return Ask(store::Operation::kPeek, entries, cost, domain);
}

Verdict Limiter::Ask(store::Operation operation, std::span<const rule::Entry> entries,
                     uint64_t cost, std::string_view domain) {
  return state_->With([&](limiter::Checker& checker, limiter::Response& response) {
    const rule::Descriptor descriptor{.entries = entries, .cost = cost};
    if (HasEmptyKey(descriptor)) return Verdict{.allowed = false};
    const absl::Status status =
        checker.Check({.domain = domain, .descriptors = {&descriptor, 1}, .operation = operation},
                      response, state_->clock.Now());
    return status.ok() ? VerdictOf(response.descriptors[0]) : Verdict{.allowed = false};
  });
}

absl::StatusOr<std::vector<Verdict>> Limiter::CheckAll(
    std::span<const rule::Descriptor> descriptors, std::string_view domain) {
  return state_->With([&](limiter::Checker& checker,
                          limiter::Response& response) -> absl::StatusOr<std::vector<Verdict>> {
    if (std::any_of(descriptors.begin(), descriptors.end(), HasEmptyKey))
      return absl::InvalidArgumentError("the key of an entry is empty");
    const absl::Status status = checker.Check({.domain = domain, .descriptors = descriptors},
                                              response, state_->clock.Now());
    if (!status.ok()) return status;
    std::vector<Verdict> verdicts;
    verdicts.reserve(response.descriptors.size());
    for (const limiter::DescriptorAnswer& answer : response.descriptors)
      verdicts.push_back(VerdictOf(answer));
    return verdicts;
  });
}

absl::Status Limiter::Refund(std::span<const rule::Entry> entries, uint64_t cost,
                             std::string_view domain) {
  return state_->Apply(store::Operation::kRefund, entries, cost, domain);
}

absl::Status Limiter::Reset(std::span<const rule::Entry> entries, std::string_view domain) {
  return state_->Apply(store::Operation::kReset, entries, 1, domain);
}

absl::Status Limiter::SetRules(const std::vector<std::string>& rules,
                               const std::vector<RuleText>& files) {
  auto loaded = LoadRules(rules, files);
  if (!loaded.ok()) return loaded.status();
  return state_->limiter.OnRules(*std::move(loaded), state_->clock.Now());
}

void Limiter::Maintain() {
  state_->clock.Discipline();
  if (state_->memory) state_->memory->Sweep(state_->clock.Now());
}

std::string Limiter::Snapshot() {
  return state_->memory ? state_->memory->Snapshot(state_->clock.Now()) : std::string();
}

}  // namespace headgate
