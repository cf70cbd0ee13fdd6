#include "tests/redis/arithmetic_host.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/check.h"
#include "headgate/store/big_endian.h"
#include "headgate/store/bucket_codec.h"
#include "headgate/store/redis/script.h"
#include "headgate/store/redis/value_checksum.h"

namespace headgate::redis_host {
namespace {

using algorithm::Algorithm;
using algorithm::Limit;
using base::Duration;
using base::Instant;
using store::StoredBucket;
using store::Unpacker;
using wire::RespValue;

// The same constants as in scripts/clock.lua and scripts/leases.lua.
enum class Op : uint8_t { kTake, kPeek, kRefund, kReset, kLease, kCharge, kUndo };
constexpr uint8_t kDecided = 1;
constexpr uint8_t kOtherLimit = 2;
constexpr uint8_t kDamaged = 3;
constexpr uint8_t kClockReset = 2;
constexpr uint8_t kTimed = 1;
// How a value begins that may be a bucket.
bool IsBucket(std::string_view value) {
  return value.starts_with(store::kFormatVersion) || value.starts_with(store::kBlockingVersion);
}

Instant InstantOf(uint64_t ns) { return Instant::FromNanos(static_cast<int64_t>(ns)); }
Duration DurationOf(uint64_t ns) { return Duration(static_cast<int64_t>(ns)); }

bool IsOurs(std::string_view script) {
  constexpr std::array kLeased{Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                               Algorithm::kSlidingWindowCounter};
  return std::any_of(kLeased.begin(), kLeased.end(), [&](Algorithm algorithm) {
    return store::redis::ScriptOf(algorithm).text.data() == script.data();
  });
}

// One run of a script.
class Run {
 public:
  Run(Keyspace& keyspace, Instant clock, std::string_view key,
      std::span<const std::string_view> arguments)
      : keyspace_(keyspace), clock_(clock), key_(key), arguments_(arguments) {
    std::string_view prefix = arguments[0];
    limit_ = store::TakeLimit(prefix).value();
    state_at_ = arguments[0].size() + (limit_.blocks() ? store::kBlockBytes : 0);
    Unpacker in(arguments[1]);
    op_ = static_cast<Op>(in.U8());
    const bool timed = (in.U8() & kTimed) != 0;
    now_ = InstantOf(in.U64());
    // TIME has microseconds.
    if (!timed) now_ = Instant::FromNanos(clock.ns / 1000 * 1000);
    start_ = now_;
    far_ = DurationOf(in.U64());
    replaced_ = now_ - DurationOf(in.U64());
    ms_least_ = in.U32();
    in.U32();  // the checksum of the limit
    if (op_ != Op::kReset) cost_ = CostFrom(in);
    if (op_ == Op::kUndo)
      taken_at_ = InstantOf(Unpacker(arguments[1].substr(arguments[1].size() - 8)).U64());
  }

  RespValue Do() {
    if (op_ == Op::kReset) {
      Command({"DEL"});
      return Decided({}, true);
    }
    bucket_.limit = limit_;
    if (auto other = Read()) return *std::move(other);
    SetTheClock();
    return Step();
  }

 private:
  // The scripts get the price of a request for buckets, and its cost for windows.
  algorithm::Cost CostFrom(Unpacker& in) const {
    in.U32();  // the capacity of a window, or the requests of a bucket
    if (IsWindow(limit_.algorithm())) return in.U64();
    in.U64();  // the span
    in.U32();
    const uint64_t price = in.U64();
    const uint32_t fraction = in.U32();
    const bool unaffordable = price > static_cast<uint64_t>(base::kDurationMax.count());
    const bool changes = op_ == Op::kCharge || op_ == Op::kUndo || op_ == Op::kRefund ||
                         (op_ == Op::kTake && limit_.spec().overdraw);
    if (changes && price >= algorithm::kOwedMost.ns) return ~algorithm::Cost{0};
    return unaffordable ? limit_.capacity() + 1 : WholeIntervals(limit_, {price, fraction});
  }

  RespValue Command(std::vector<std::string> words) {
    words.insert(words.begin() + 1, std::string(key_));
    return keyspace_.Run(words, clock_);
  }

  bool IsRead(std::string_view value) const {
    return arguments_.size() > 3 && arguments_[3] == value;
  }

  // As scripts/value.lua. Returns an answer if the bucket belongs to another limit.
  std::optional<RespValue> Read() {
    RespValue reply = Command({"GET"});
    existed_ = reply.kind != RespValue::Kind::kNull;
    if (!existed_) return std::nullopt;
    bool carried = false;
    std::string value;
    if (reply.is_error()) {
      const RespValue header = Command({"LINDEX", "0"});
      if (!IsBucket(header.text)) return Foreign();
      const auto length = static_cast<uint32_t>(Command({"LLEN"}).integer);
      std::string read = header.text;
      store::Packer(read).U32(length);
      if (!IsRead(read)) return OtherLog(header.text, length);
      carried = true;
    } else {
      value = std::move(reply.text);
      carried = IsRead(value);
    }
    if (carried) value = std::string(arguments_[4]);
    const std::string_view prefix = arguments_[0];
    bool is_of_limit = value.starts_with(prefix);
    if (is_of_limit && value.size() >= state_at_ + 20) {
      const Instant seen =
          InstantOf(Unpacker(std::string_view(value).substr(state_at_ + 12)).U64());
      is_of_limit = carried || seen > replaced_;
    }
    if (!is_of_limit) {
      if (!IsBucket(value) || value.size() > store::kValueBytesMax) return Foreign();
      std::string other;
      store::Packer(other).U8(kOtherLimit).U8(0).U64(static_cast<uint64_t>(now_.ns));
      return Bulk(other + value);
    }
    const auto bytes = carried ? std::optional(value) : store::redis::BucketOfValue(value);
    if (!bytes) return Foreign();
    auto found = store::ParseBucket(*bytes);
    if (!found) return Foreign();
    bucket_ = *std::move(found);
    read_ = bucket_.state;
    return std::nullopt;
  }

  static RespValue Foreign() { return Bulk(std::string(1, static_cast<char>(kDamaged))); }

  std::optional<RespValue> OtherLog(const std::string& header, uint32_t length) {
    std::string other;
    store::Packer(other)
        .U8(kOtherLimit)
        .U8(1)
        .U64(static_cast<uint64_t>(now_.ns))
        .U32(static_cast<uint32_t>(header.size()))
        .U32(length);
    size_t size = 0;
    for (const RespValue& item : Command({"LRANGE", "0", "-1"}).items) {
      other += item.text;
      size += item.text.size();
    }
    if (size > store::kValueBytesMax) return Foreign();
    return Bulk(std::move(other));
  }

  void SetTheClock() {
    algorithm::RememberedUntil& remembered_until = bucket_.remembered_until;
    if (bucket_.state.seen > now_ + far_) {
      SetBackLeased(limit_, bucket_.state, bucket_.leases, remembered_until, now_);
      events_ |= kClockReset;
    }
    now_ = std::max(now_, bucket_.state.seen);
    if (remembered_until <= now_) remembered_until = {};
  }

  RespValue Step() {
    algorithm::BucketState& state = bucket_.state;
    ExpireLeases(limit_, state, bucket_.leases, now_);
    for (const algorithm::Lease& lease : bucket_.leases) {
      if (!lease.has_ended() && !lease.is_mark()) last_ = std::max(last_, lease.expires_at);
    }
    // Takes and peeks report the rest that they found, all others the rest after them.
    algorithm::BucketState answered = Found();
    const algorithm::Block found_block = state.block;
    bool allowed = true;
    std::string said;
    algorithm::NoHits no_hits;
    switch (op_) {
      case Op::kTake:
        allowed = Decide(limit_, state, no_hits, cost_, now_).allowed;
        break;
      case Op::kPeek: {
        algorithm::BucketState copy = state;
        allowed = Peek(limit_, copy, no_hits, cost_, now_).allowed;
        break;
      }
      case Op::kRefund:
        RefundLeased(limit_, state, bucket_.leases, cost_, now_);
        answered = Left();
        break;
      case Op::kCharge:
        ChargeLeased(limit_, state, bucket_.leases, cost_, now_);
        answered = Left();
        break;
      case Op::kUndo:
        UndoLeased(limit_, state, bucket_.leases, cost_, taken_at_, now_);
        answered = Left();
        break;
      case Op::kLease:
        said = Ask(allowed);
        answered = Left();
        break;
      case Op::kReset:
        break;
    }
    if (op_ != Op::kPeek) Write();
    RespValue reply = Decided(answered, allowed);
    if (limit_.blocks()) store::AppendBlock(found_block, reply.text);
    reply.text += said;
    return reply;
  }

  bool IsCounter() const { return limit_.algorithm() == Algorithm::kSlidingWindowCounter; }

  // A sliding counter reports its value as read, unless leases increased the count.
  algorithm::BucketState Found() const {
    algorithm::BucketState state = bucket_.state;
    if (IsCounter()) {
      algorithm::BucketState advanced = read_;
      if (advanced.seen > now_) advanced.seen = now_;
      AdvanceWindows(limit_, advanced, now_);
      return state.seen == now_ && state.edge != advanced.edge ? state : read_;
    }
    state.seen = read_.seen;
    return state;
  }

  algorithm::BucketState Left() const {
    algorithm::BucketState state = bucket_.state;
    state.seen = IsCounter() ? now_ : read_.seen;
    return state;
  }

  std::string Ask(bool& allowed) {
    Unpacker in(arguments_[2]);
    algorithm::LeaseAsk ask;
    ask.id = {.node = in.U64(), .number = in.U64()};
    ask.cost = cost_;
    ask.want = in.U32();
    ask.brief = in.U32();
    ask.parts = in.U32();
    ask.ttl = DurationOf(in.U64());
    std::vector<algorithm::LeaseReport> reports(in.U32());
    for (algorithm::LeaseReport& report : reports) {
      report = {.number = in.U64(), .spent = in.U32(), .returned = in.U8() != 0};
    }
    ask.reports = reports;
    algorithm::LeaseGrant grant;
    allowed = AskLease(limit_, bucket_.state, bucket_.leases, ask, now_, grant).allowed;
    std::string said;
    store::Packer(said)
        .U32(static_cast<uint32_t>(grant.granted))
        .U32(static_cast<uint32_t>(grant.others))
        .U64(grant.granted > 0 ? static_cast<uint64_t>((now_ + grant.ttl).ns) : 0)
        .U64(static_cast<uint64_t>(grant.others_until.ns));
    return said;
  }

  // As scripts/answer.lua.
  void Write() {
    bucket_.state.seen = now_;
    // After a return the script does not determine which lease is the last, and keeps the bucket
    // longer.
    algorithm::Leases leases = bucket_.leases;
    const auto lives = std::find_if(
        leases.begin(), leases.end(),
        [](const algorithm::Lease& lease) { return !lease.has_ended() && !lease.is_mark(); });
    if (lives != leases.end()) lives->expires_at = std::max(lives->expires_at, last_);
    const Instant kept_until = KeptUntil(limit_, bucket_.state, leases, now_);
    // Full, but not yet fresh under its earlier limits.
    if (kept_until <= now_ && IsTokenBucket(limit_.algorithm())) {
      bucket_.state.edge = static_cast<uint64_t>(now_.ns);
      bucket_.state.count = 0;
    }
    const Instant until =
        std::max<Instant>({kept_until, bucket_.remembered_until, MarkedUntil(bucket_.leases),
                           MattersUntil(limit_, bucket_.state)});
    if (until <= now_) {
      if (existed_) Command({"DEL"});
      return;
    }
    std::string value;
    AppendBucket(bucket_, value);
    AddChecksum(value);
    const int64_t ms = ((until - start_).count() + 999'999) / 1'000'000 + 1;
    Command({"SET", value, "PX", std::to_string(std::max<int64_t>(ms, ms_least_))});
  }

  void AddChecksum(std::string& value) const {
    std::string checksum;
    const uint32_t sum = store::redis::ValueChecksum(value);
    if (bucket_.remembered_until > bucket_.state.seen) {
      store::Packer(checksum).U64(0).U64(sum).U64(0).U64(0);
      value += checksum;
    } else {
      store::Packer(checksum).U64(sum);
      value.insert(state_at_ + 20, checksum);
    }
  }

  RespValue Decided(const algorithm::BucketState& state, bool allowed) const {
    std::string reply;
    store::Packer(reply)
        .U8(kDecided)
        .U8(allowed ? 1 : 0)
        .U8(events_)
        .U64(static_cast<uint64_t>(now_.ns))
        .U64(state.edge)
        .U32(state.count)
        .U64(static_cast<uint64_t>(state.seen.ns));
    return Bulk(std::move(reply));
  }

  Keyspace& keyspace_;
  const Instant clock_;
  const std::string_view key_;
  const std::span<const std::string_view> arguments_;
  Limit limit_;
  Op op_ = Op::kPeek;
  size_t state_at_ = 0;  // bytes before the state in a value of this limit
  Instant start_{0};     // the time at the start of the call, which TTLs count from
  Instant now_{0};
  Duration far_{0};
  Instant replaced_{0};
  uint32_t ms_least_ = 0;
  algorithm::Cost cost_ = 0;
  Instant taken_at_{0};
  StoredBucket bucket_;
  algorithm::BucketState read_{};
  Instant last_{0};  // the latest expiry of the leases found
  bool existed_ = false;
  uint8_t events_ = 0;
};

}  // namespace

RespValue ArithmeticHost::Eval(Keyspace& keyspace, Instant now, std::string_view script,
                               std::string_view key, std::span<const std::string_view> arguments) {
  if (!IsOurs(script)) return lua_.Eval(keyspace, now, script, key, arguments);
  return Run(keyspace, now, key, arguments).Do();
}

}  // namespace headgate::redis_host
