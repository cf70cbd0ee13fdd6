// How requests are decided. There are four paths, from the fastest to the most general: TakeOne
// without waiting for a lock, TakeAtHome (the bucket is in its home block), TakeLocked under the
// first segment alone, and under both segments. Each path either completes the request or changes
// nothing and returns false, so that the next one can start over. Invariant: a segment may be split
// while its lock is awaited, so before a path concludes that a bucket is absent, it checks that the
// segment is still the key's.
#include "headgate/store/memory.h"

#include <algorithm>
#include <mutex>
#include <new>

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
// From this fill level on, a new bucket goes to the emptier one of its two segments. In a table
// that grows, only if its first segment is full.
constexpr uint32_t kBalanceFrom = 48;
// Enough hits for one log of the largest size, even in a small table.
constexpr uint64_t kHitBlocksMin = algorithm::kLogRequestsMax / HitBlock::kHits + 1;
// How far ahead of the decision a batch prefetches.
constexpr size_t kPrefetchAhead = 12;

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
  // A block is kept outside of the slot (more_), so a limit with blocks takes the general path.
  if (!IsTokenBucket(limit.algorithm()) || limit.blocks() ||
      request.operation != Operation::kTake || request.cost == 0)
    return false;
  const uint32_t index = segment.FindAtHome(print);
  if (index == Segment::kNoSlot) return false;
  Slot& slot = segment.slots[index];
  BucketState state = slot.Load();
  // The decision is constructed in its destination: copying it would have to wait until its parts
  // have been written. A bucket under another limit must be carried over first.
  if (slot.limit_id() != request.limit->id) return false;
  if (kIn == In::kAnyUnits) {
    new (&decision) Decision(DecideTokenBucket(limit, state, request.cost, now));
  } else {
    if (limit.denies_all() || !InWholeNanoseconds(limit, state)) return false;
    new (&decision) Decision(DecideInWholeNanoseconds(limit, state, request.cost, now));
  }
  decision.at = state.seen;
  slot.Store(state);
  return true;
}

// Whether the request consumes something, so that its bucket is needed.
bool Consumes(const TakeRequest& request) {
  return request.operation == Operation::kTake || request.operation == Operation::kCharge;
}

Instant Later(Instant a, Instant b) { return std::max(a, b); }

}  // namespace

MemoryStore::MemoryStore(const MemoryOptions& options)
    : buckets_max_(std::max<uint64_t>(1, options.max_buckets)),
      shape_(SegmentsFor(buckets_max_)),
      segments_(shape_.count_max(), HugePages::kLater),
      more_(shape_.count_max(), HugePages::kNo),
      secret_(options.secret),
      limits_(
          {.client_limits_max = options.max_limits, .rule_limits_max = options.max_rule_limits}),
      hits_(HitBlocksFor(buckets_max_)) {
  limits_.SetScan([this](uint64_t steps) { Scan(steps); }, shape_.count_max());
}

MemoryStore::~MemoryStore() = default;

Segment& MemoryStore::LockFirst(const Fingerprint& print) {
  while (true) {
    Segment& first = First(print);
    first.lock.lock();
    if (&first == &First(print)) [[likely]]
      return first;
    first.lock.unlock();  // split before it was locked
  }
}

// The most common case is so short that it needs no stack frame: each memory write before the lock
// is taken would delay the lock.
void MemoryStore::TakeOne(const TakeRequest& request, Decision& decision, Instant now) {
  now = base::Clamp(now);
  const Fingerprint print = Fingerprint::Of(request.key);
  const uint64_t unsplit = shape_.UnsplitSegmentOf(print.main);
  if (unsplit == TableShape::kSplit) [[unlikely]]
    return TakeOneAfterWaiting(request, decision, now);
  Segment& first = segments_[unsplit];
  // The lock delays all later reads, so without this prefetch the bucket would be fetched only
  // after the lock is taken.
  first.Prefetch(print);
  if (!first.lock.try_lock()) [[unlikely]]
    return TakeOneAfterWaiting(request, decision, now);
  if (!TakeAtHome<In::kWholeNanoseconds>(request, print, first, decision, now))
    return TakeOneLocked(request, first, decision, now);
  first.lock.unlock();
}

void MemoryStore::TakeOneAfterWaiting(const TakeRequest& request, Decision& decision, Instant now) {
  TakeOneLocked(request, LockFirst(Fingerprint::Of(request.key)), decision, now);
}

void MemoryStore::TakeOneLocked(const TakeRequest& request, Segment& first, Decision& decision,
                                Instant now) {
  const Fingerprint print = Fingerprint::Of(request.key);
  if (&first != &First(print)) [[unlikely]] {  // split before it was locked
    first.lock.unlock();
    return TakeOneAfterWaiting(request, decision, now);
  }
  const bool done = TakeInFirst(request, print, decision, now);
  first.lock.unlock();
  if (!done) TakeInBothSegments(request, print, decision, now);
}

void MemoryStore::Take(base::Strided<const TakeRequest> requests, base::Strided<Decision> decisions,
                       Instant now) {
  HEADGATE_DCHECK(requests.size() == decisions.size());
  now = base::Clamp(now);
  const size_t count = requests.size();
  // Do not prefetch for consecutive requests of one key: their bucket is in this core's cache
  // already, or in the cache of another core that uses it and would lose it.
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
    // Consecutive requests of one segment share a lock. A group releases it, because LockAll takes
    // its locks in the order of addresses.
    if (held != &first) {
      if (held != nullptr) held->lock.unlock();
      first.lock.lock();
      held = &first;
    }
    if (TakeAtHome<In::kWholeNanoseconds>(requests[i], print, first, decisions[i], now)) [[likely]]
      continue;
    if (&First(print) != held) [[unlikely]] {  // split before it was locked
      held->lock.unlock();
      held = &LockFirst(print);
    }
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
    // Leave the bucket unchanged: if the limit is raised again, consumed requests stay consumed.
    if (request.operation == Operation::kReset) {
      if (held == Held::kFirst && shape_.count() > 1) return false;
      if (const SlotRef ref = Find(print, held); ref.found()) Remove(ref);
    }
    decision = algorithm::DenyAll(limit, AsksToPass(request.operation) ? request.cost : 0);
    decision.at = now;
    return true;
  }
  SlotRef ref = Find(print, held);
  BucketState state;
  algorithm::RememberedUntil remembered_until{};
  // The name belongs to a counter. A counter is not a bucket, so the request is denied.
  if (ref.found() && ref->limit_id() != request.limit->id && HoldsCounter(ref, now)) [[unlikely]] {
    decision = algorithm::DenyAll(limits_.Get(ref->limit_id()), std::max<Cost>(request.cost, 1));
    decision.at = now;
    return true;
  }
  if (ref.found()) {
    state = BucketAt(ref);
    remembered_until = RememberedUntil(ref);
    if (ref->limit_id() != request.limit->id) [[unlikely]] {
      const bool logs = IsLog(limit) || IsLog(limits_.Get(ref->limit_id()));
      CarryOver(request, state, remembered_until, ref->limit_id(), now);
      if (OnlyLooks(request.operation, request.cost) && !logs) {
        // A peek changes nothing, so the bucket keeps its old limit. (A log's hits cannot be copied
        // for a trial, so logs are excluded.)
        decision = Apply(request, print, {held, ref}, state, now);
        decision.at = Later(now, state.seen);
        return true;
      }
    }
  } else if (held == Held::kFirst && shape_.count() > 1) {
    const Segment& first = First(print);
    // The bucket is not in its first segment. It may be in the second one only if buckets have
    // spilled there; and a new bucket needs both segments only if the first one, or the table, is
    // nearly full.
    const bool elsewhere = first.spilled.load(std::memory_order_relaxed) > 0;
    const bool crowded = first.used_slots() >= (shape_.grows() ? Segment::kSlots : kBalanceFrom) ||
                         buckets_.load(std::memory_order_relaxed) >= buckets_max_;
    if (elsewhere || (crowded && Consumes(request))) return false;
  }
  decision = Apply(request, print, {held, ref}, state, now);
  decision.at = Later(now, state.seen);
  // Earlier limits no longer matter if the bucket is reset, or if their time is over.
  if (request.operation == Operation::kReset || remembered_until <= Later(now, state.seen))
    remembered_until = {};

  // After a consuming request the bucket is never fresh; after any other request it may be.
  const bool consumed =
      request.operation == Operation::kTake && decision.allowed && request.cost > 0;
  const bool fresh =
      !consumed && remembered_until.ns == 0 &&
      MattersUntil(limit, state) <= Later(now, state.seen) &&
      FreshAt(limit, state, HitsOf(state.edge, *request.limit)) <= Later(now, state.seen);
  if (ref.found()) {
    SetLimit(ref, *request.limit);
    Keep(ref, state, remembered_until);
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
      // The limit would have allowed the request, but there was no block for its hit.
      if (!decision.allowed && request.cost <= decision.remaining) {
        hits_refused_.fetch_add(1, std::memory_order_relaxed);
      }
      return decision;
    }
    case Operation::kPeek: {
      BucketState copy = state;
      if (!IsLog(limit)) return algorithm::Peek(limit, copy, hits, request.cost, now);
      // A log's hits cannot be copied for a trial, so decide on the original and undo the take.
      Decide(limit, state, hits, 0, now);
      const uint32_t before = state.count;
      const Decision decision = algorithm::Peek(limit, state, hits, request.cost, now);
      if (state.count > before) hits.ReduceNewest(state.count - before);
      state.count = before;
      return decision;
    }
    case Operation::kRefund: {
      // A queue cannot take anything back. The answer then describes the bucket as it is.
      auto decision = Refund(limit, state, hits, request.cost, now);
      return decision.ok() ? *decision : Decide(limit, state, hits, 0, now);
    }
    case Operation::kReset:
      Reset(limit, state, hits);
      return Decide(limit, state, hits, 0, now);
    case Operation::kCharge:
      if (IsLog(limit) && hits_.blocks_in_use() == hits_.blocks_max())
        MakeRoomForHits(request, print, at_hand, state, now);
      return Charge(limit, state, hits, request.cost, now);
    case Operation::kUndo: {
      auto decision = algorithm::Undo(limit, state, hits, request.cost, request.taken_at, now);
      return decision.ok() ? *decision : Decide(limit, state, hits, 0, now);
    }
  }
  __builtin_unreachable();
}

void MemoryStore::CarryOver(const TakeRequest& request, BucketState& state,
                            algorithm::RememberedUntil& remembered_until, uint32_t limit_id,
                            Instant now) {
  ArenaHitLog hits = HitsOf(state.edge, *request.limit);
  const LimitEntry& before = limits_.EntryOf(limit_id);
  // Blocks of hits count for the class that owns the bucket's limit.
  if (IsLog(before.limit) && before.owner != request.limit->owner) {
    const uint64_t blocks = hits.CountBlocks();
    before.owner->hit_blocks.fetch_sub(blocks, std::memory_order_relaxed);
    request.limit->owner->hit_blocks.fetch_add(blocks, std::memory_order_relaxed);
  }
  // Each change is applied at its own time, as if the bucket had been asked at that moment.
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

MemoryStore::GroupSegments MemoryStore::LockAll(base::Strided<const TakeRequest> group) {
  const auto find_all = [&] {
    // A key's bucket may be in either of its segments. All threads lock in the order of addresses,
    // so two groups never wait for each other.
    GroupSegments segments;
    for (size_t i = 0; i < group.size(); ++i) {
      const Fingerprint print = Fingerprint::Of(group[i].key);
      segments.push_back(&First(print));
      segments.push_back(&Second(print));
    }
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    return segments;
  };
  while (true) {
    const GroupSegments segments = find_all();
    const uint64_t count = shape_.count();
    for (Segment* segment : segments) segment->lock.lock();
    // If the table has grown meanwhile, one of them may have been split before it was locked.
    if (shape_.count() == count && find_all() == segments) return segments;
    for (Segment* segment : segments) segment->lock.unlock();
  }
}

void MemoryStore::TakeGroup(base::Strided<const TakeRequest> group,
                            base::Strided<Decision> decisions, Instant now) {
  const GroupSegments segments = LockAll(group);
  // Requests of a group are decided one after the other in the table itself, because a group may
  // contain one bucket twice. After a denial, all of them are undone in reverse order.
  absl::InlinedVector<Before, kGroupInline> before(group.size());
  bool denied = false;
  for (size_t i = 0; i < group.size(); ++i) {
    const Fingerprint print = Fingerprint::Of(group[i].key);
    if (const SlotRef ref = Find(print, Held::kBoth); ref.found()) {
      before[i] = {.existed = true,
                   .limit_id = ref->limit_id(),
                   .state = BucketAt(ref),
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
    // All takes have been undone. Limits that count denied requests take again. All others that
    // would have allowed are peeked at, so that their answers describe the bucket after the denial.
    absl::InlinedVector<bool, kGroupInline> counts(group.size());
    for (size_t i = 0; i < group.size(); ++i) {
      counts[i] = CountsDenied(group, i, [&](size_t k) { return !decisions[k].allowed; });
    }
    for (size_t i = 0; i < group.size(); ++i) {
      const Fingerprint print = Fingerprint::Of(group[i].key);
      if (counts[i]) {
        const Decision before_undo = decisions[i];
        TakeLocked(group[i], print, Held::kBoth, decisions[i], now);
        // The bucket was named before, and has room again because those takes are undone. The
        // request is counted, and stays denied.
        if (!before_undo.allowed && decisions[i].allowed) decisions[i] = before_undo;
      }
      if (!decisions[i].allowed || (counts[i] && group[i].cost <= decisions[i].remaining)) continue;
      // A limit that counted the request peeks with the same cost, because the request may not fit
      // any more. Other limits peek with cost 0 to report their rest.
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
    // The log counts less than the cost only if its sum has saturated.
    const auto taken = static_cast<uint32_t>(std::min<Cost>(request.cost, hits.Newest().cost));
    hits.ReduceNewest(taken);
    state.count -= taken;
    ref->Store(state);
    if (hits.empty() && !ref->has_more()) Remove(ref);
  } else if (before.existed && IsLog(limits_.Get(before.limit_id))) {
    // The change of the limit has dropped the hits, so refund the cost under the current limit.
    if (!decision.allowed) return;
    BucketState state = ref->Load();
    ArenaHitLog hits = HitsOf(state.edge, *request.limit);
    Refund(limit, state, hits, request.cost, state.seen).IgnoreError();
    ref->Store(state);
  } else if (before.existed) {
    BucketState state = before.state;
    // A block that began with this request stays.
    if (const algorithm::Block block = BucketAt(ref).block; block.until > state.block.until)
      state.block = block;
    SetLimit(ref, limits_.EntryOf(before.limit_id));
    Keep(ref, state, before.remembered_until);
  } else if (const BucketState after = BucketAt(ref); after.block.exists()) {
    Keep(ref, {.seen = after.seen, .block = after.block}, {});
  } else {
    Remove(ref);
  }
}

MemoryStore::SlotRef MemoryStore::Find(const Fingerprint& print, Held held) const {
  Segment& first = First(print);
  if (const uint32_t slot = first.Find(print); slot != Segment::kNoSlot) return {&first, slot};
  if (held == Held::kBoth && shape_.count() > 1) {
    Segment& second = Second(print);
    if (const uint32_t slot = second.Find(print); slot != Segment::kNoSlot) return {&second, slot};
  }
  return {};
}

void MemoryStore::SetLimit(SlotRef ref, const LimitEntry& limit) {
  if (ref->limit_id() == limit.id) return;
  LimitClass& before = *limits_.EntryOf(ref->limit_id()).owner;
  ref->SetLimit(limit.id);
  // Each class counts its buckets: the class that holds most of the table loses one when it is
  // full.
  if (&before == limit.owner) return;
  before.buckets.fetch_sub(1, std::memory_order_relaxed);
  limit.owner->buckets.fetch_add(1, std::memory_order_relaxed);
}

BucketState MemoryStore::BucketAt(SlotRef ref) const {
  BucketState state = ref->Load();
  if (ref->has_more()) state.block = more_[ref.segment - segments_][ref.slot].block;
  return state;
}

algorithm::RememberedUntil MemoryStore::RememberedUntil(SlotRef ref) const {
  return ref->has_more()
             ? algorithm::FromWord(more_[ref.segment - segments_][ref.slot].remembered_until)
             : algorithm::RememberedUntil{};
}

void MemoryStore::Keep(SlotRef ref, const BucketState& state,
                       algorithm::RememberedUntil remembered_until) {
  ref->Store(state);
  const bool has_more = remembered_until.ns > 0 || state.block.exists();
  ref->SetHasMore(has_more);
  if (has_more)
    more_[ref.segment - segments_][ref.slot] = {algorithm::ToWord(remembered_until), state.block};
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
