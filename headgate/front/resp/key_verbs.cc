#include "headgate/front/resp/key_verbs.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

#include "headgate/front/resp/verb_replies.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/pending_counts.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {
namespace {

using store::Operation;

void WriteInteger(int64_t number, std::string& output) {
  wire::RespWriter(output, wire::RespVersion::k2).Integer(number);
}

// This process's memory does not know the buckets of a shared store.
absl::Status OnlyTheStoreKnows(std::string_view command) {
  return absl::UnimplementedError(
      fmt::format("{} is not supported with a shared store: ask the store for the key hg:{{t|KEY}} "
                  "of a bucket, "
                  "or hg:{{c|KEY}} of a counter",
                  command));
}

}  // namespace

// Counters and buckets that are deleted from the shared store.
class KeyVerbs::Deletion final : public LateReply {
 public:
  Deletion() : LateReply(CommandKind::kAlone) {}

  // The buckets were decided at once.
  void Take(base::Strided<const limiter::Settled> settled) {
    for (size_t i = 0; i < settled.size(); ++i) settled_.push_back(settled[i]);
  }
  Answered Write(std::string& output, base::Instant /*now*/) override {
    if (counts.waiting() || pending.waiting()) return Answered::kLater;
    const std::span<const limiter::Settled> buckets =
        settled_.empty() ? pending.settled() : std::span<const limiter::Settled>(settled_);
    const size_t count = buckets.size();
    bool deleted = true;
    while (!counts.empty()) deleted = counts.TakeNext().ok() && deleted;
    for (const limiter::Settled& bucket : buckets) {
      deleted = deleted &&
                (bucket.mode == limiter::Mode::kExact || bucket.mode == limiter::Mode::kLeased);
    }
    if (!deleted) {
      return WriteError(
          absl::UnavailableError("the shared store cannot be reached: not all keys were deleted"),
          output);
    }
    WriteInteger(static_cast<int64_t>(count), output);
    return Answered::kWell;
  }

  limiter::PendingCounts counts{[this] { WakeIfComplete(); }};
  limiter::Pending pending{[this] { WakeIfComplete(); }};

 private:
  void WakeIfComplete() {
    if (!counts.waiting() && !pending.waiting()) Wake();
  }

  std::vector<limiter::Settled> settled_;
};

Answered KeyVerbs::Del(const wire::RespParser& command, const Turn& turn) {
  if (own_.may_wait()) return DelShared(command, turn);
  int64_t existed = 0;
  for (size_t i = 1; i < command.size(); ++i) {
    const store::LimitHandle limit = own_.LimitOf(command[i]);
    if (!limit) continue;
    if (Life(command[i], turn.now)) ++existed;
    own_.Apply(Operation::kReset, command[i], *limit, turn.now);
  }
  WriteInteger(existed, turn.output);
  return Answered::kWell;
}

Answered KeyVerbs::Exists(const wire::RespParser& command, const Turn& turn) {
  if (own_.may_wait()) return WriteError(OnlyTheStoreKnows("EXISTS"), turn.output);
  int64_t existing = 0;
  for (size_t i = 1; i < command.size(); ++i) existing += Life(command[i], turn.now) ? 1 : 0;
  WriteInteger(existing, turn.output);
  return Answered::kWell;
}

Answered KeyVerbs::Ttl(base::Duration unit, const wire::RespParser& command, const Turn& turn) {
  if (own_.may_wait()) {
    return WriteError(OnlyTheStoreKnows(unit < std::chrono::seconds(1) ? "PTTL" : "TTL"),
                      turn.output);
  }
  constexpr int64_t kNoSuchKey = -2;
  constexpr int64_t kNoExpiry = -1;
  const std::optional<base::Duration> left = Life(command[1], turn.now);
  if (!left || *left == kForever) {
    WriteInteger(left ? kNoExpiry : kNoSuchKey, turn.output);
  } else {
    WriteInteger((left->count() + unit.count() - 1) / unit.count(), turn.output);
  }
  return Answered::kWell;
}

std::optional<base::Duration> KeyVerbs::Life(std::string_view key, base::Instant now) {
  if (const auto counter = own_.FindCounter(key, now)) {
    const bool expires = counter->expires_at != algorithm::Counter::kNeverExpires;
    return expires ? counter->expires_at - now : kForever;
  }
  const store::LimitHandle limit = own_.LimitOf(key);
  if (!limit) return std::nullopt;
  const algorithm::Decision decision = own_.Apply(Operation::kPeek, key, *limit, now);
  if (decision.reset_after.count() <= 0) return std::nullopt;
  return decision.reset_after;
}

Answered KeyVerbs::DelShared(const wire::RespParser& command, const Turn& turn) {
  // A reset is the same under every limit of the bucket's algorithm.
  const auto any = algorithm::Limit::Make({.requests = 1, .period = std::chrono::seconds(1)});
  const auto limit = any.ok() ? own_.Intern(*any) : any.status();
  if (!limit.ok()) return WriteError(limit.status(), turn.output);
  std::vector<limiter::BatchEntry> batch;
  for (size_t i = 1; i < command.size(); ++i) {
    batch.push_back({.request = {.key = own_.HashOf(command[i]),
                                 .limit = limit->get(),
                                 .cost = 0,
                                 .operation = Operation::kReset},
                     .terms = own_.terms()});
  }
  auto deletion = std::make_unique<Deletion>();
  for (size_t i = 1; i < command.size(); ++i)
    counters_.Delete(command[i], deletion->counts, turn.now);
  const auto key = [&](size_t index) { return command[1 + index]; };
  if (own_.Decide(batch, key, &deletion->pending, turn.now))
    deletion->Take(base::Strided<const limiter::Settled>::Of(std::span<limiter::BatchEntry>(batch),
                                                             &limiter::BatchEntry::settled));
  const Answered answered = deletion->Write(turn.output, turn.now);
  if (answered == Answered::kLater) turn.queue.Add(std::move(deletion));
  return answered;
}

}  // namespace headgate::front::resp
