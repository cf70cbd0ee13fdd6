#include "headgate/store/redis/bucket_call.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/base/check.h"
#include "headgate/store/answer_without_store.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/damaged_value.h"
#include "headgate/store/redis/value_checksum.h"
#include "headgate/wire/digest.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::store::redis {
namespace {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::CanLease;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::ExactSpan;
using algorithm::KeepsLeases;
using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::Duration;
using base::Instant;

// As in scripts/clock.lua and scripts/leases.lua.
enum class ScriptOperation : uint8_t { kTake, kPeek, kRefund, kReset, kLease, kCharge, kUndo };
constexpr uint8_t kDecided = 1;
constexpr uint8_t kOtherLimit = 2;
constexpr uint8_t kDamaged = 3;
constexpr uint8_t kEventClockReset = 2;
constexpr uint8_t kTimed = 1, kFits = 2;

constexpr uint64_t kU32Max = std::numeric_limits<uint32_t>::max();
// More than any bucket can hold: never admitted.
constexpr ExactSpan kUnaffordable{~uint64_t{0} >> 1, 0};
// A stored time this far ahead of the server's clock is not jitter.
constexpr Duration kAheadLeast = std::chrono::seconds(1);

ScriptOperation OperationOf(Operation operation, Cost cost) {
  if (OnlyLooks(operation, cost)) return ScriptOperation::kPeek;
  switch (operation) {
    case Operation::kTake:
      return ScriptOperation::kTake;
    case Operation::kPeek:
      return ScriptOperation::kPeek;
    case Operation::kRefund:
      return ScriptOperation::kRefund;
    case Operation::kReset:
      return ScriptOperation::kReset;
    case Operation::kCharge:
      return ScriptOperation::kCharge;
    case Operation::kUndo:
      return ScriptOperation::kUndo;
  }
  __builtin_unreachable();
}

// Whether the call must wait while the shard is learning. Operations that do not ask to pass, and
// reports of spending, are safe whatever the store has forgotten.
bool LearnsFirst(const SharedRequest& request) {
  if (!CanLease(request.limit->limit)) return false;
  if (request.lease) return request.lease->want > 0 || request.lease->cost > 0;
  return request.leased && AsksToPass(request.operation);
}

// Numbers of a server, bounded so that sums stay within 63 bits.
Duration DurationOf(uint64_t ns) {
  return Duration(
      static_cast<int64_t>(std::min(ns, static_cast<uint64_t>(base::kDurationMax.count()))));
}

uint64_t Nanos(Duration duration) {
  return static_cast<uint64_t>(std::max<int64_t>(0, duration.count()));
}

uint32_t Millis(Duration duration) {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<uint32_t>(std::clamp<int64_t>(ms, 0, static_cast<int64_t>(kU32Max)));
}

ExactSpan MeterPrice(const Limit& limit, ScriptOperation operation, Cost cost) {
  const bool decides = operation == ScriptOperation::kTake || operation == ScriptOperation::kLease;
  if (decides && !limit.spec().overdraw)
    return cost > limit.capacity() ? kUnaffordable : Price(limit, cost);
  return PriceOfAny(limit, cost);
}

void PackZone(base::TimeZone zone, Packer& pack) {
  const auto changes = zone.changes();
  pack.U32(static_cast<uint32_t>(changes.size()));
  for (const base::TimeZone::Change& change : changes)
    pack.U32(static_cast<uint32_t>(change.at_s)).U32(static_cast<uint32_t>(change.offset_s));
}

// The length of all turns of the request except the last one; for a charge, of all turns.
ExactSpan TurnsBeforeLast(const Limit& limit, ScriptOperation operation, Cost cost) {
  if (cost == 0) return {};
  if (operation == ScriptOperation::kCharge) return PriceOfAny(limit, cost);
  return cost - 1 > limit.capacity() ? kUnaffordable : Price(limit, cost - 1);
}

}  // namespace

absl::Status Unreadable(std::string_view script, const wire::RespValue& reply) {
  return absl::InternalError(
      fmt::format("script {} sent an unknown answer: {}", script, reply.ToString()));
}

std::string HashedName(std::string_view name) {
  return "hg:{" + wire::DigestHex(wire::Digest::kSha256, name).substr(0, 32) + "}";
}

std::optional<SharedAnswer> BucketCall::AnswerWithoutStore(const SharedRequest& request) {
  return store::AnswerWithoutStore(request);
}

BucketCall::BucketCall(const SharedRequest& request, const CallContext& context, std::string memory)
    : limit_(request.limit->limit),
      context_(context),
      cost_(request.lease ? request.lease->cost : request.cost),
      asks_lease_(request.lease.has_value()),
      learns_(LearnsFirst(request)),
      keeps_limit_(request.keeps_limit && !asks_lease_),
      operation_(request.operation),
      taken_at_(request.taken_at),
      history_(request.history, limit_, request.now),
      bytes_(std::move(memory)) {
  if (context_.now && history_.asked_at() != request.now)
    context_.now = *context_.now + Duration(1);
  bytes_.clear();
  bytes_.reserve(request.name.size() + 128);
  if (request.name.size() > kNameBytesMax) {
    bytes_.append(HashedName(request.name));
  } else {
    bytes_.append(request.name);
  }
  EndPart();
  AppendLimit();
  if (request.lease) {
    AppendAsk(*request.lease);
    EndPart();
  }
}

// The bucket's name is appended; the rest depends on the limit.
void BucketCall::AppendLimit() {
  script_ = &ScriptOf(limit_.algorithm());
  store::AppendLimit(limit_.spec(), bytes_);
  EndPart();
  AppendNumbers();
  EndPart();
}

std::string_view BucketCall::Part(size_t i) const {
  const uint32_t begin = i == 0 ? 0 : part_ends_[i - 1];
  return std::string_view(bytes_).substr(begin, part_ends_[i] - begin);
}

void BucketCall::AppendNumbers() {
  const Limit& limit = limit_;
  const ScriptOperation operation =
      asks_lease_ ? ScriptOperation::kLease : OperationOf(operation_, cost_);
  // The time of a queue or log that was made from a bucket with leases is the end of the last
  // lease, so it may be this far ahead.
  const Duration ahead = context_.ahead_most.value_or(
      std::max(kAheadLeast, TimeToFull(limit)) +
      (KeepsLeases(limit.algorithm()) ? Duration(0) : context_.lease_ttl_most));
  Packer pack(bytes_);
  const bool is_queue = IsQueue(limit.algorithm());
  const bool fits = cost_ <= limit.capacity() + (is_queue ? 1 : 0);
  pack.U8(static_cast<uint8_t>(operation))
      .U8(static_cast<uint8_t>((context_.now ? kTimed : 0) | (fits ? kFits : 0)));
  pack.U64(context_.now ? static_cast<uint64_t>(base::Clamp(*context_.now).ns) : 0);
  pack.U64(Nanos(ahead)).U64(Nanos(history_.replaced_ago())).U32(Millis(context_.kept_least));
  pack.U32(LimitChecksum(Part(1)));
  if (operation == ScriptOperation::kReset) return;

  const uint64_t cost = std::min<uint64_t>(cost_, kU32Max + 1);
  const auto capacity = static_cast<uint32_t>(limit.capacity());
  switch (limit.algorithm()) {
    case Algorithm::kTokenBucket:
    case Algorithm::kLeakyBucket:
      pack.U32(limit.requests())
          .Span(SpanOf(limit))
          .Span(MeterPrice(limit, operation, cost_))
          .Span(IntervalOf(limit));
      break;
    case Algorithm::kLeakyBucketQueue:
      pack.U32(limit.requests())
          .Span(SpanOf(limit))
          .Span(TurnsBeforeLast(limit, operation, cost_))
          .Span(IntervalOf(limit));
      break;
    case Algorithm::kFixedWindow:
      pack.U32(capacity).U64(cost).U8(static_cast<uint8_t>(limit.spec().align));
      pack.U8(limit.spec().count_denied ? 1 : 0).U64(limit.period());
      if (IsCalendar(limit.spec().align)) PackZone(limit.spec().zone, pack);
      break;
    case Algorithm::kSlidingWindowCounter:
      pack.U32(capacity).U64(cost).U8(limit.spec().count_denied ? 1 : 0).U64(limit.period());
      break;
    case Algorithm::kSlidingWindowLog:
      pack.U32(capacity).U64(cost).U64(limit.period());
      break;
  }
  if (operation == ScriptOperation::kUndo)
    pack.U64(static_cast<uint64_t>(base::Clamp(taken_at_).ns));
}

void BucketCall::AppendAsk(const LeaseAsk& ask) {
  Packer pack(bytes_);
  pack.U64(ask.id.node).U64(ask.id.number);
  pack.U32(static_cast<uint32_t>(std::min(ask.want, kLeaseRequestsMax)))
      .U32(static_cast<uint32_t>(std::min(ask.brief, kLeaseRequestsMax)))
      .U32(std::max(1u, ask.parts));
  pack.U64(Nanos(std::min(ask.ttl, context_.lease_ttl_most)))
      .U32(static_cast<uint32_t>(ask.reports.size()));
  for (const LeaseReport& report : ask.reports) {
    pack.U64(report.number)
        .U32(static_cast<uint32_t>(std::min(report.spent, kLeaseRequestsMax)))
        .U8(report.returned ? 1 : 0);
  }
}

void BucketCall::AppendCommand(Form form, std::string& out) const {
  wire::RespWriter writer(out, wire::RespVersion::k2);
  writer.Array(part_count_ + 3u);
  out.append(form == Form::kDigest ? script_->by_digest : script_->by_text);
  for (size_t i = 0; i < part_count_; ++i) writer.Bulk(Part(i));
}

std::optional<SharedAnswer> BucketCall::Read(const wire::RespValue& reply) {
  if (reply.kind == wire::RespValue::Kind::kBulk && !reply.text.empty()) {
    const auto status = static_cast<uint8_t>(reply.text.front());
    std::optional<SharedAnswer> answer;
    const int carries = carries_;
    if (status == kDecided) {
      answer = ReadDecided(reply.text);
    } else if (status == kDamaged) {
      return Damaged();
    } else if (status == kOtherLimit) {
      answer = CarryOver(reply.text);
    }
    if (answer || carries_ > carries) return answer;
  }
  SharedAnswer answer;
  answer.status =
      reply.is_error()
          ? absl::UnavailableError(fmt::format("script {}: {}", script_->name, reply.text))
          : Unreadable(script_->name, reply);
  return answer;
}

std::optional<SharedAnswer> BucketCall::ReadDecided(std::string_view reply) {
  Unpacker in(reply.substr(1));
  const bool allowed = in.U8() != 0;
  const uint8_t events = in.U8();
  const Instant now = Instant::FromNanos(static_cast<int64_t>(in.U64()));
  BucketState state{.edge = in.U64(), .seen = Instant::FromNanos(0), .count = in.U32()};
  HitList hits;
  const uint64_t seen_or_hit = in.U64();
  if (KeepsHits(limit_.algorithm()) && operation_ != Operation::kReset) {
    // `edge` is the time of the newest hit. The last two numbers are the hit whose expiry makes
    // enough room for the request, and the cost of the newest hit. The kernel needs no other hits.
    const Instant newest = Instant::FromNanos(static_cast<int64_t>(state.edge));
    const Instant freeing = Instant::FromNanos(static_cast<int64_t>(seen_or_hit));
    const uint32_t newest_cost = in.U32();
    if (newest.ns < 0 || newest > now || freeing.ns < 0) return std::nullopt;
    if (state.count > 0) {
      if (freeing < newest && newest_cost < state.count) {
        hits.Append({freeing, state.count - newest_cost});
        hits.Append({newest, newest_cost});
      } else {
        hits.Append({newest, state.count});
      }
    }
    state.edge = 0;
    state.seen = now;
  } else {
    state.seen = std::min(now, Instant::FromNanos(static_cast<int64_t>(seen_or_hit)));
  }
  if (limit_.blocks() && operation_ != Operation::kReset) {
    const auto block = BlockOf(in.rest());
    if (!block) return std::nullopt;
    state.block = *block;
    in = Unpacker(in.rest().substr(kBlockBytes));
    const BucketState at_now{.edge = 0, .seen = now, .count = 0, .block = *block};
    if (!HasSoundBlock(limit_, at_now)) return std::nullopt;
  }
  if (!in.complete() || now < state.seen ||
      !IsSound(limit_, {.edge = 0, .seen = now, .count = 0}, now) || !IsSound(limit_, state, now)) {
    return std::nullopt;
  }
  events_.clock_reset = (events & kEventClockReset) != 0;

  SharedAnswer answer;
  if (asks_lease_) {
    answer.events = events_;
    ReadGrant(in.rest(), state, now, allowed, answer);
    answer.decision.at = now;
    return answer;
  }
  return Decide(state, std::move(hits), now, allowed);
}

// For this operation the script answers with the state after the call, and a request that it has
// denied cannot pass yet.
void BucketCall::ReadGrant(std::string_view tail, BucketState state, Instant now, bool allowed,
                           SharedAnswer& answer) {
  Unpacker in(tail);
  LeaseGrant& grant = answer.grant;
  grant.granted = in.U32();
  grant.others = in.U32();
  const uint64_t until = in.U64();
  grant.others_until = Instant::FromNanos(static_cast<int64_t>(in.U64()));
  if (!in.complete()) {
    answer.status = absl::InternalError("the answer to a lease request contains no grant");
    return;
  }
  if (grant.granted > 0) grant.ttl = DurationOf(until) - Duration(now.ns);
  grant.next_after =
      algorithm::NextAfter(limit_, state, cost_, grant.others, grant.others_until, now);
  HitList no_hits;
  answer.decision = algorithm::Decide(limit_, state, no_hits, 0, now);
  if (allowed) return;
  answer.decision.allowed = false;
  answer.decision.retry_after = grant.next_after;
  if (grant.next_after == Duration(0)) answer.status = Contradicted(allowed);
}

SharedAnswer BucketCall::Damaged() {
  SharedAnswer answer;
  answer.status = DamagedValueError();
  return answer;
}

absl::Status BucketCall::Contradicted(bool allowed) const {
  return absl::InternalError(fmt::format(
      "script {} {} a request that the kernel {}; the bucket's key is {}", script_->name,
      allowed ? "allowed" : "denied", allowed ? "denies" : "allows", key()));
}

SharedAnswer BucketCall::Decide(BucketState state, HitList hits, Instant now, bool allowed) {
  SharedAnswer answer;
  answer.events = events_;
  if (operation_ == Operation::kReset) {
    state = {};
    hits = {};
  }
  answer.decision =
      operation_ == Operation::kTake
          ? algorithm::Decide(limit_, state, hits, cost_, now)
          : algorithm::Peek(limit_, state, hits, operation_ == Operation::kPeek ? cost_ : 0, now);
  answer.decision.at = now;
  // The script sends only some of the hits.
  if (KeepsHits(limit_.algorithm())) answer.decision.more_after = Duration(0);
  if (operation_ == Operation::kTake && cost_ > 0 && answer.decision.allowed != allowed) {
    answer.status = Contradicted(allowed);
  }
  return answer;
}

namespace {

// A reply with a bucket of another limit, as it is stored.
struct OtherLimit {
  bool is_list;
  Instant now;
  uint32_t header_size = 0;  // of a list
  uint32_t list_size = 0;
  std::string_view raw;
};

std::optional<OtherLimit> ParseOtherLimit(std::string_view reply) {
  Unpacker in(reply.substr(1));
  OtherLimit other{};
  other.is_list = in.U8() != 0;
  other.now = Instant::FromNanos(static_cast<int64_t>(in.U64()));
  if (!in.complete()) return std::nullopt;
  if (other.is_list) {
    other.header_size = in.U32();
    other.list_size = in.U32();
  }
  other.raw = in.rest();
  return other;
}

}  // namespace

std::optional<SharedAnswer> BucketCall::CarryOver(std::string_view reply) {
  const std::optional<OtherLimit> other = ParseOtherLimit(reply);
  if (!other || operation_ == Operation::kReset) return std::nullopt;
  const auto& [is_list, now, header_size, list_size, raw] = *other;
  ++carries_;
  SharedAnswer answer;
  if (carries_ > kCarriesMax) {
    answer.status = absl::AbortedError(
        "several instances keep changing the bucket's limit to different values");
    return answer;
  }

  const std::optional<std::string> bytes = BucketOfValue(raw);
  std::optional<StoredBucket> found;
  if (bytes) found = ParseBucket(*bytes);
  if (!found || is_list != KeepsHits(found->limit.algorithm())) return Damaged();
  if (keeps_limit_ && !found->limit.denies_all() && found->limit.spec() != limit_.spec()) {
    limit_ = found->limit;
    bytes_.resize(part_ends_[0]);
    part_count_ = 1;
    AppendLimit();
    return std::nullopt;
  }
  history_.CarryOver(limit_, now, *found);
  events_.carried_over = true;
  const bool looks = !asks_lease_ && OnlyLooks(operation_, cost_);
  // A peek changes nothing, so the bucket keeps its limit.
  if (looks)
    return Decide(found->state, std::move(found->hits), std::max(now, found->state.seen), true);

  // The second call carries the state that was read and the new state. A list is identified by its
  // header and its length.
  std::string next(bytes_, 0, part_ends_[2]);
  next.reserve(bytes_.size() + raw.size() + 64);
  part_count_ = 3;
  if (asks_lease_) next.append(Part(3));
  part_ends_[part_count_++] = static_cast<uint32_t>(next.size());
  if (is_list) {
    next.append(raw.substr(0, header_size));
    Packer(next).U32(list_size);
  } else {
    next.append(raw);
  }
  part_ends_[part_count_++] = static_cast<uint32_t>(next.size());
  // A log that stays a log keeps its hits: only its header changes.
  if (found->hits.size() > 1) found->hits = {};
  AppendBucket(*found, next);
  part_ends_[part_count_++] = static_cast<uint32_t>(next.size());
  bytes_ = std::move(next);
  return std::nullopt;
}

}  // namespace headgate::store::redis
