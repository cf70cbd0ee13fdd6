#include "headgate/front/resp/key_verbs.h"

#include <fmt/format.h>

#include "headgate/base/hash.h"
#include "headgate/front/resp/decide_on_turn.h"
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

absl::StatusOr<bool> KeyVerbs::Del(const wire::RespParser& command, const ThrottleTurn& turn) {
  if (checker_.may_wait()) return DelShared(command, turn);
  int64_t existed = 0;
  for (size_t i = 1; i < command.size(); ++i) {
    const store::LimitHandle limit = checker_.store().LimitOf(HashOf(command[i]));
    if (!limit) continue;
    if (Life(command[i], turn.now)) ++existed;
    Reset(command[i], *limit, turn.now);
  }
  WriteInteger(existed, turn.output);
  return true;
}

absl::Status KeyVerbs::Exists(const wire::RespParser& command, const ThrottleTurn& turn) {
  if (checker_.may_wait()) return OnlyTheStoreKnows("EXISTS");
  int64_t existing = 0;
  for (size_t i = 1; i < command.size(); ++i) existing += Life(command[i], turn.now) ? 1 : 0;
  WriteInteger(existing, turn.output);
  return absl::OkStatus();
}

absl::Status KeyVerbs::Ttl(base::Duration unit, const wire::RespParser& command,
                           const ThrottleTurn& turn) {
  if (checker_.may_wait())
    return OnlyTheStoreKnows(unit < std::chrono::seconds(1) ? "PTTL" : "TTL");
  constexpr int64_t kNoSuchKey = -2;
  constexpr int64_t kNoExpiry = -1;
  const std::optional<base::Duration> left = Life(command[1], turn.now);
  if (!left || *left == kForever) {
    WriteInteger(left ? kNoExpiry : kNoSuchKey, turn.output);
  } else {
    WriteInteger((left->count() + unit.count() - 1) / unit.count(), turn.output);
  }
  return absl::OkStatus();
}

base::Hash128 KeyVerbs::HashOf(std::string_view key) const {
  return base::HashBytes(checker_.store().hash_secret(), base::KeyKind::kRaw, key);
}

std::optional<base::Duration> KeyVerbs::Life(std::string_view key, base::Instant now) {
  const base::Hash128 hash = HashOf(key);
  if (const auto counter = checker_.store().FindCounter(hash, now)) {
    const bool expires = counter->expires_at != algorithm::Counter::kNeverExpires;
    return expires ? counter->expires_at - now : kForever;
  }
  const store::LimitHandle limit = checker_.store().LimitOf(hash);
  if (!limit) return std::nullopt;
  const store::TakeRequest peek{
      .key = hash, .limit = limit.get(), .cost = 0, .operation = Operation::kPeek};
  algorithm::Decision decision;
  checker_.store().TakeOne(peek, decision, now);
  if (decision.reset_after.count() <= 0) return std::nullopt;
  return decision.reset_after;
}

void KeyVerbs::Reset(std::string_view key, const store::LimitEntry& limit, base::Instant now) {
  const store::TakeRequest reset{
      .key = HashOf(key), .limit = &limit, .cost = 0, .operation = Operation::kReset};
  algorithm::Decision decision;
  checker_.store().TakeOne(reset, decision, now);
}

absl::StatusOr<bool> KeyVerbs::DelShared(const wire::RespParser& command,
                                         const ThrottleTurn& turn) {
  // The counters first, then the buckets.
  if (turn.counts.empty()) {
    for (size_t i = 1; i < command.size(); ++i) counters_.Delete(command[i], turn);
  }
  if (turn.counts.waiting()) return false;
  store::LimitHandle limit;
  const auto read = [&]() -> absl::Status {
    // A reset is the same under every limit of the bucket's algorithm.
    HEADGATE_ASSIGN_OR_RETURN(
        const algorithm::Limit any,
        algorithm::Limit::Make({.requests = 1, .period = std::chrono::seconds(1)}));
    HEADGATE_ASSIGN_OR_RETURN(limit, checker_.store().limits().Intern(any));
    batch_.clear();
    for (size_t i = 1; i < command.size(); ++i) {
      batch_.push_back({.request = {.key = HashOf(command[i]),
                                    .limit = limit.get(),
                                    .cost = 0,
                                    .operation = Operation::kReset},
                        .terms = checker_.decider().default_terms()});
    }
    return absl::OkStatus();
  };
  const auto answered = DecideOnTurn(checker_, batch_, turn,
                                     {.read = read,
                                      .key = [&](size_t index) { return command[1 + index]; },
                                      .reply =
                                          [&](base::Strided<const limiter::Settled> settled) {
                                            return ReplyDeleted(settled, turn);
                                          }});
  if (!answered.ok() || *answered) turn.counts.Clear();
  return answered;
}

absl::Status KeyVerbs::ReplyDeleted(base::Strided<const limiter::Settled> settled,
                                    const ThrottleTurn& turn) {
  bool deleted = true;
  while (!turn.counts.empty()) deleted = turn.counts.TakeNext().ok() && deleted;
  for (size_t i = 0; i < settled.size(); ++i) {
    const limiter::Mode mode = settled[i].mode;
    deleted = deleted && (mode == limiter::Mode::kExact || mode == limiter::Mode::kLeased);
  }
  if (!deleted) {
    return absl::UnavailableError("the shared store cannot be reached: not all keys were deleted");
  }
  WriteInteger(static_cast<int64_t>(settled.size()), turn.output);
  return absl::OkStatus();
}

}  // namespace headgate::front::resp
