#include "headgate/store/memory.h"

#include <algorithm>
#include <mutex>

#include "absl/container/inlined_vector.h"
#include "headgate/base/check.h"

namespace headgate::store {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::Cost;
using algorithm::Decision;
using algorithm::Limit;
using base::Instant;

namespace {

// The planned fill level of a segment: 54 of 60 slots. With two segments to choose from, no segment
// then overflows before the whole table is full.
constexpr uint64_t kPlannedSlots = 54;
// From this fill level on, a new bucket goes to the emptier one of its two segments.
constexpr uint32_t kBalanceFrom = 48;
// Enough hits for one log of the largest size, even in a small table.
constexpr uint64_t kHitBlocksMin = algorithm::kLogRequestsMax / HitBlock::kHits + 1;
// How far ahead of the decision a batch prefetches.
constexpr size_t kPrefetchAhead = 12;
constexpr size_t kGroupInline = 32;

uint64_t SegmentsFor(uint64_t buckets_max) {
  return buckets_max <= Segment::kSlots ? 1 : (buckets_max + kPlannedSlots - 1) / kPlannedSlots;
}

uint32_t HitBlocksFor(uint64_t buckets_max) {
  const uint64_t blocks = std::max(kHitBlocksMin, buckets_max / HitBlock::kHits);
  return static_cast<uint32_t>(std::min<uint64_t>(blocks, uint64_t{1} << 30));
}

// The units in which a token bucket is decided.
enum class In : uint8_t { kAnyUnits, kWholeNanoseconds };

// The common case only: an existing token bucket in its home block, last used under the same limit.
// In all other cases returns false and changes nothing.
template <In kIn>
[[gnu::always_inline]] inline bool TakeAtHome(const TakeRequest& request, const Fingerprint& print,
                                              Segment& segment, Decision& decision, Instant now) {
  const Limit& limit = request.limit->limit;
  const bool token_bucket =
      limit.algorithm() == Algorithm::kTokenBucket || limit.algorithm() == Algorithm::kLeakyBucket;
  if (!token_bucket || request.operation != Operation::kTake || request.cost == 0) return false;
  const uint32_t index = segment.FindAtHome(print);
  if (index == Segment::kNoSlot) return false;
  Slot& slot = segment.slots[index];
  BucketState state = slot.Load();
  if (slot.limit_id() != request.limit->id) return false;
  if (kIn == In::kAnyUnits) {
    decision = DecideTokenBucket(limit, state, request.cost, now);
  } else {
    if (limit.denies_all() || !InWholeNanoseconds(limit, state)) return false;
    decision = DecideInWholeNanoseconds(limit, state, request.cost, now);
  }
  slot.Store(state);
  return true;
}

bool IsPeek(const TakeRequest& request) {
  return request.operation == Operation::kPeek ||
         (request.operation == Operation::kTake && request.cost == 0);
}

Instant Later(Instant a, Instant b) { return std::max(a, b); }

}  // namespace

MemoryStore::MemoryStore(const MemoryOptions& options)
    : buckets_max_(std::max<uint64_t>(1, options.max_buckets)),
      segment_count_(SegmentsFor(buckets_max_)),
      segments_(segment_count_, HugePages::kLater),
      remembered_(segment_count_, HugePages::kNo),
      secret_(options.secret),
      limits_(
          {.client_limits_max = options.max_limits, .rule_limits_max = options.max_rule_limits}),
      hits_(HitBlocksFor(buckets_max_)) {
  limits_.SetScan([this](uint64_t steps) { Scan(steps); }, segment_count_);
}

MemoryStore::~MemoryStore() = default;

Segment& MemoryStore::Second(const Fingerprint& print) const {
  const Segment& first = First(print);
  Segment& second = segments_[base::MulHigh(std::rotl(print.main, 32), segment_count_)];
  if (&second != &first) return second;
  return &first + 1 < segments_ + segment_count_ ? *(&second + 1) : segments_[0];
}

// The most common case is so short that it needs no stack: every store before the lock is taken
// would delay the lock.
void MemoryStore::TakeOne(const TakeRequest& request, Decision& decision, Instant now) {
  now = base::Clamp(now);
  const Fingerprint print = Fingerprint::Of(request.key);
  Segment& first = First(print);
  if (!first.lock.try_lock()) [[unlikely]]
    return TakeOneAfterWaiting(request, decision, now);
  if (!TakeAtHome<In::kWholeNanoseconds>(request, print, first, decision, now))
    return TakeOneLocked(request, decision, now);
  first.lock.unlock();
}

void MemoryStore::TakeOneAfterWaiting(const TakeRequest& request, Decision& decision, Instant now) {
  First(Fingerprint::Of(request.key)).lock.lock();
  TakeOneLocked(request, decision, now);
}

void MemoryStore::TakeOneLocked(const TakeRequest& request, Decision& decision, Instant now) {
  const Fingerprint print = Fingerprint::Of(request.key);
  Segment& first = First(print);
  const bool done = TakeInFirst(request, print, decision, now);
  first.lock.unlock();
  if (!done) TakeInBothSegments(request, print, decision, now);
}

void MemoryStore::Take(base::Strided<const TakeRequest> requests, base::Strided<Decision> decisions,
                       Instant now) {
  HEADGATE_DCHECK(requests.size() == decisions.size());
  now = base::Clamp(now);
  const size_t count = requests.size();
  // Do not prefetch for consecutive requests of one key: their bucket is already in this core's
  // cache, or in another core's, which would lose it.
  const auto fetch_ahead = [&](size_t i) {
    const size_t neighbour = i == 0 ? 1 : i - 1;
    if (neighbour >= count || requests[neighbour].key.low != requests[i].key.low)
      Prefetch(requests[i].key);
  };
  for (size_t i = 0; i < std::min(count, kPrefetchAhead); ++i) fetch_ahead(i);
  Segment* held = nullptr;  // kept locked while consecutive requests use the same segment
  for (size_t i = 0; i < count; ++i) {
    if (i + kPrefetchAhead < count) fetch_ahead(i + kPrefetchAhead);
    if (i + 1 < count && requests[i + 1].joined != Joined::kNo) {
      if (held != nullptr) held->lock.unlock();
      held = nullptr;
      size_t end = i + 1;
      while (end < count && requests[end].joined != Joined::kNo) ++end;
      TakeGroup(requests.subspan(i, end - i), decisions.subspan(i, end - i), now);
      i = end - 1;
      continue;
    }
    const Fingerprint print = Fingerprint::Of(requests[i].key);
    Segment& first = First(print);
    if (held != &first) {
      if (held != nullptr) held->lock.unlock();
      first.lock.lock();
      held = &first;
    }
    if (TakeAtHome<In::kWholeNanoseconds>(requests[i], print, first, decisions[i], now)) [[likely]]
      continue;
    if (!TakeInFirst(requests[i], print, decisions[i], now)) {
      held->lock.unlock();
      held = nullptr;
      TakeInBothSegments(requests[i], print, decisions[i], now);
    }
  }
  if (held != nullptr) held->lock.unlock();
}

bool MemoryStore::TakeInFirst(const TakeRequest& request, const Fingerprint& print,
                              Decision& decision, Instant now) {
  return TakeAtHome<In::kAnyUnits>(request, print, First(print), decision, now) ||
         TakeLocked(request, print, Held::kFirst, decision, now);
}

void MemoryStore::TakeInBothSegments(const TakeRequest& request, const Fingerprint& print,
                                     Decision& decision, Instant now) {
  InBothSegments(print, [&] { TakeLocked(request, print, Held::kBoth, decision, now); });
}

LimitHandle MemoryStore::LimitOf(const base::Hash128& key) {
  const Fingerprint print = Fingerprint::Of(key);
  LimitHandle limit;
  InBothSegments(print, [&] {
    const SlotRef ref = Find(print, Held::kBoth);
    if (ref.found() && !limits_.IsRetired(ref->limit_id()))
      limit = LimitHandle::Pin(limits_.EntryOf(ref->limit_id()));
  });
  return limit;
}

bool MemoryStore::TakeLocked(const TakeRequest& request, const Fingerprint& print, Held held,
                             Decision& decision, Instant now) {
  const Limit& limit = request.limit->limit;
  if (limit.denies_all()) [[unlikely]] {
    // Leave the bucket unchanged: if the limit is raised again, what was consumed stays consumed.
    const bool asks =
        request.operation == Operation::kTake || request.operation == Operation::kPeek;
    if (request.operation == Operation::kReset) {
      if (held == Held::kFirst && segment_count_ > 1) return false;
      if (const SlotRef ref = Find(print, held); ref.found()) Remove(ref);
    }
    decision = algorithm::DenyAll(limit, asks ? request.cost : 0);
    return true;
  }
  SlotRef ref = Find(print, held);
  BucketState state;
  Instant remembered_until{0};
  if (ref.found() && ref->limit_id() != request.limit->id && HoldsCounter(ref, now)) [[unlikely]] {
    decision = algorithm::DenyAll(limits_.Get(ref->limit_id()), std::max<Cost>(request.cost, 1));
    return true;
  }
  if (ref.found()) {
    state = ref->Load();
    remembered_until = RememberedUntil(ref);
    if (ref->limit_id() != request.limit->id) [[unlikely]] {
      const bool logs = IsLog(limit) || IsLog(limits_.Get(ref->limit_id()));
      CarryOver(request, state, remembered_until, ref->limit_id(), now);
      if (IsPeek(request) && !logs) {
        // A peek changes nothing, so the bucket keeps its old limit. (The hits of a log have no
        // copy, so logs are excluded.)
        decision = Apply(request, print, {held, ref}, state, now);
        return true;
      }
    }
  } else if (held == Held::kFirst && segment_count_ > 1) {
    const Segment& first = First(print);
    const bool elsewhere = first.spilled.load(std::memory_order_relaxed) > 0;
    const bool crowded = first.used_slots() >= kBalanceFrom ||
                         buckets_.load(std::memory_order_relaxed) >= buckets_max_;
    if (elsewhere || (crowded && request.operation == Operation::kTake)) return false;
  }
  decision = Apply(request, print, {held, ref}, state, now);
  if (request.operation == Operation::kReset || remembered_until <= Later(now, state.seen))
    remembered_until = {};

  // After a consuming request the bucket is never fresh; after any other request it may be.
  const bool consumed =
      request.operation == Operation::kTake && decision.allowed && request.cost > 0;
  const bool fresh =
      !consumed && remembered_until.ns == 0 &&
      FreshAt(limit, state, HitsOf(state.edge, *request.limit)) <= Later(now, state.seen);
  if (ref.found()) {
    ref->Store(state);
    SetLimit(ref, *request.limit);
    SetRememberedUntil(ref, remembered_until);
    if (IsLog(limit)) SetNewestHitsSlot(ref);
    if (fresh) Remove(ref);
  } else if (!fresh) {
    Insert(print, held, *request.limit, state, now);
  }
  return true;
}

Decision MemoryStore::Apply(const TakeRequest& request, const Fingerprint& print,
                            const AtHand& at_hand, BucketState& state, Instant now) {
  const Limit& limit = request.limit->limit;
  ArenaHitLog hits = HitsOf(state.edge, *request.limit);
  switch (request.operation) {
    case Operation::kTake: {
      if (!IsLog(limit)) [[likely]]
        return Decide(limit, state, hits, request.cost, now);
      if (hits_.blocks_in_use() == hits_.blocks_max())
        MakeRoomForHits(request, print, at_hand, state, now);
      const Decision decision = Decide(limit, state, hits, request.cost, now);
      if (!decision.allowed && request.cost <= decision.remaining) {
        hits_refused_.fetch_add(1, std::memory_order_relaxed);
      }
      return decision;
    }
    case Operation::kPeek: {
      BucketState copy = state;
      if (!IsLog(limit)) return Decide(limit, copy, hits, request.cost, now);
      // The hits have no copy, so decide on the original and give back what was taken.
      const Decision decision = Decide(limit, state, hits, request.cost, now);
      if (decision.allowed && request.cost > 0) {
        hits.ReduceNewest(static_cast<uint32_t>(request.cost));
        state.count -= static_cast<uint32_t>(request.cost);
      }
      return decision;
    }
    case Operation::kRefund: {
      auto decision = Refund(limit, state, hits, request.cost, now);
      return decision.ok() ? *decision : Decide(limit, state, hits, 0, now);
    }
    case Operation::kReset:
      Reset(limit, state, hits);
      return Decide(limit, state, hits, 0, now);
  }
  __builtin_unreachable();
}

void MemoryStore::CarryOver(const TakeRequest& request, BucketState& state,
                            Instant& remembered_until, uint32_t limit_id, Instant now) {
  ArenaHitLog hits = HitsOf(state.edge, *request.limit);
  const LimitEntry& before = limits_.EntryOf(limit_id);
  if (IsLog(before.limit) && before.owner != request.limit->owner) {
    const uint64_t blocks = hits.CountBlocks();
    before.owner->hit_blocks.fetch_sub(blocks, std::memory_order_relaxed);
    request.limit->owner->hit_blocks.fetch_add(blocks, std::memory_order_relaxed);
  }
  const Limit* from = &before.limit;
  // The change that ended the limit under which this bucket was last used, if the rule's history
  // still has it.
  const auto ended =
      std::find_if(request.history.begin(), request.history.end(),
                   [&](const LimitChange& change) { return change.before->id == limit_id; });
  for (auto change = ended; change != request.history.end(); ++change) {
    const Limit& to =
        change + 1 != request.history.end() ? (change + 1)->before->limit : request.limit->limit;
    Change(*from, to, state, hits, remembered_until, change->at);
    from = &to;
  }
  if (ended == request.history.end())
    Change(*from, request.limit->limit, state, hits, remembered_until, now);
}

void MemoryStore::TakeGroup(base::Strided<const TakeRequest> group,
                            base::Strided<Decision> decisions, Instant now) {
  absl::InlinedVector<Segment*, 2 * kGroupInline> segments;
  for (size_t i = 0; i < group.size(); ++i) {
    const Fingerprint print = Fingerprint::Of(group[i].key);
    segments.push_back(&First(print));
    segments.push_back(&Second(print));
  }
  std::sort(segments.begin(), segments.end());
  segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
  for (Segment* segment : segments) segment->lock.lock();

  absl::InlinedVector<Before, kGroupInline> before(group.size());
  bool denied = false;
  for (size_t i = 0; i < group.size(); ++i) {
    const Fingerprint print = Fingerprint::Of(group[i].key);
    if (const SlotRef ref = Find(print, Held::kBoth); ref.found()) {
      before[i] = {.existed = true,
                   .limit_id = ref->limit_id(),
                   .state = ref->Load(),
                   .remembered_until = RememberedUntil(ref)};
    }
    TakeLocked(group[i], print, Held::kBoth, decisions[i], now);
    const bool denied_before = denied;
    denied = denied || !decisions[i].allowed;
    // After the first denial, later requests are decided only for their answers, and undone.
    if (denied_before) Undo(group[i], print, before[i], decisions[i]);
    if (denied && !denied_before) {
      for (size_t j = i + 1; j-- > 0;)
        Undo(group[j], Fingerprint::Of(group[j].key), before[j], decisions[j]);
    }
  }
  if (denied) {
    absl::InlinedVector<bool, kGroupInline> counts(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
      counts[i] = CountsDenied(group, i, [&](size_t k) { return !decisions[k].allowed; });
    }
    for (size_t i = 0; i < group.size(); ++i) {
      const Fingerprint print = Fingerprint::Of(group[i].key);
      if (counts[i]) TakeLocked(group[i], print, Held::kBoth, decisions[i], now);
      if (!decisions[i].allowed || (counts[i] && group[i].cost <= decisions[i].remaining)) continue;
      // A limit that counted the request peeks with the same cost, because the request may not fit
      // any more. Other limits peek with cost 0 to report what is left.
      TakeRequest peek = group[i];
      peek.operation = Operation::kPeek;
      if (!counts[i]) peek.cost = 0;
      TakeLocked(peek, print, Held::kBoth, decisions[i], now);
    }
  }
  for (Segment* segment : segments) segment->lock.unlock();
}

void MemoryStore::Undo(const TakeRequest& request, const Fingerprint& print, const Before& before,
                       const Decision& decision) {
  const SlotRef ref = Find(print, Held::kBoth);
  if (!ref.found()) return;
  const Limit& limit = request.limit->limit;
  if (IsLog(limit)) {
    // Hits cannot be restored from a copy, but the newest ones belong to this request.
    if (!decision.allowed || request.cost == 0) return;
    BucketState state = ref->Load();
    ArenaHitLog hits = HitsOf(state.edge, *request.limit);
    hits.ReduceNewest(static_cast<uint32_t>(request.cost));
    state.count -= static_cast<uint32_t>(request.cost);
    ref->Store(state);
    if (hits.empty() && !ref->remembered()) Remove(ref);
  } else if (before.existed && IsLog(limits_.Get(before.limit_id))) {
    // The hits were dropped by the change of limit, so refund under the current limit what was
    // taken.
    if (!decision.allowed) return;
    BucketState state = ref->Load();
    ArenaHitLog hits = HitsOf(state.edge, *request.limit);
    Refund(limit, state, hits, request.cost, state.seen).IgnoreError();
    ref->Store(state);
  } else if (before.existed) {
    ref->Store(before.state);
    SetLimit(ref, limits_.EntryOf(before.limit_id));
    SetRememberedUntil(ref, before.remembered_until);
  } else {
    Remove(ref);
  }
}

MemoryStore::SlotRef MemoryStore::Find(const Fingerprint& print, Held held) const {
  Segment& first = First(print);
  if (const uint32_t slot = first.Find(print); slot != Segment::kNoSlot) return {&first, slot};
  if (held == Held::kBoth && segment_count_ > 1) {
    Segment& second = Second(print);
    if (const uint32_t slot = second.Find(print); slot != Segment::kNoSlot) return {&second, slot};
  }
  return {};
}

void MemoryStore::SetLimit(SlotRef ref, const LimitEntry& limit) {
  if (ref->limit_id() == limit.id) return;
  LimitClass& before = *limits_.EntryOf(ref->limit_id()).owner;
  ref->SetLimit(limit.id);
  if (&before == limit.owner) return;
  before.buckets.fetch_sub(1, std::memory_order_relaxed);
  limit.owner->buckets.fetch_add(1, std::memory_order_relaxed);
}

Instant MemoryStore::RememberedUntil(SlotRef ref) const {
  return ref->remembered() ? remembered_[ref.segment - segments_][ref.slot] : Instant::FromNanos(0);
}

void MemoryStore::SetRememberedUntil(SlotRef ref, Instant remembered_until) {
  ref->SetRemembered(remembered_until.ns > 0);
  if (remembered_until.ns > 0) remembered_[ref.segment - segments_][ref.slot] = remembered_until;
}

MemoryStats MemoryStore::stats() const {
  return {.buckets = buckets_.load(std::memory_order_relaxed),
          .buckets_max = buckets_max_,
          .evictions = evictions_.load(std::memory_order_relaxed),
          .evicted_requests = evicted_requests_.load(std::memory_order_relaxed),
          .hit_blocks = hits_.blocks_in_use(),
          .hit_blocks_max = hits_.blocks_max(),
          .hits_refused = hits_refused_.load(std::memory_order_relaxed),
          .limits = limits_.size(),
          .client_limits = limits_.client_limits(),
          .client_limits_forgotten = limits_.client_limits_forgotten(),
          .left_out = left_out_,
          .rebased = rebased_.load(std::memory_order_relaxed)};
}

}  // namespace headgate::store
