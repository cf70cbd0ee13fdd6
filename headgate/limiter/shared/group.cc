// Requests that pass together or not at all, over several buckets of the shared store.
//
// Members are asked one after the other: first those that are known to deny, and queues last, since
// they cannot be refunded. When one
// denies, later members are only peeked at, and the costs taken before go back.
//
// The bucket of an id is looked at before the others, and taken from after them: it may be used up
// only if a request has passed, since the next one with this id then passes without asking anybody.
// If requests with one id are asked at the same time, all but one find it used up at the end, give
// back what they took, and pass as well. One that was denied meanwhile looks once more.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/limiter/shared/shared_decider.h"

namespace headgate::limiter::shared {

using store::Operation;

namespace {

bool TakesRefunds(const store::LimitEntry& limit) {
  return algorithm::TakesRefunds(limit.limit.algorithm());
}

}  // namespace

// A group in progress: its members are asked one after the other.
struct SharedDecider::Group {
  // By position in the request.
  struct Progress {
    bool took = false;  // it was asked to consume, not only peeked at
    // by its limit; an unreachable store does not count as a denying limit
    bool limit_denies = false;
  };

  State state;
  std::vector<Member> members;
  std::vector<std::string> names;
  std::vector<Progress> progress;
  std::vector<size_t> order;  // queues last; without the bucket of an id
  std::optional<size_t> id;   // the position of the bucket of an id
  bool id_is_used = false;
  std::vector<Settled> settled;
  size_t first = 0;  // the position of the first member in `state`
  size_t next = 0;   // in `order`
  bool denied = false;
  size_t answers_open = 0;

  // Whether the member counts the request although the group is denied, as far as known from the
  // answers so far.
  bool CountsDenied(size_t index) const {
    return store::CountsDenied(members, index,
                               [this](size_t k) { return progress[k].limit_denies; });
  }

  void Finish() {
    std::copy(settled.begin(), settled.end(),
              state->settled.begin() + static_cast<ptrdiff_t>(first));
    state->Close();
  }
};

void SharedDecider::AskGroup(std::span<const BatchEntry> entries, Namer name, base::Instant now,
                             const State& state, size_t first) {
  auto group = std::make_shared<Group>();
  group->state = state;
  group->first = first;
  for (size_t k = 0; k < entries.size(); ++k) {
    group->members.push_back(MemberOf(entries[k], now));
    name(k, group->names.emplace_back());
    group->progress.emplace_back();
    if (entries[k].terms.remembers_id) {
      group->id = k;
    } else {
      group->order.push_back(k);
    }
  }
  std::stable_partition(group->order.begin(), group->order.end(),
                        [&](size_t k) { return TakesRefunds(*group->members[k].limit); });
  // A client that its own limit denies again and again takes nothing from limits of others
  // meanwhile.
  std::stable_partition(group->order.begin(), group->order.end(),
                        [&](size_t k) { return IsDeniedHere(group->members[k]); });
  group->settled.resize(group->members.size());
  if (!group->id) return AskNext(group);
  AskId(group, Operation::kPeek, [this, group] {
    group->denied = group->id_is_used;
    AskNext(group);
  });
}

void SharedDecider::AskId(const std::shared_ptr<Group>& group, Operation operation,
                          std::function<void()> then) {
  Member member = group->members[*group->id];
  member.operation = operation;
  const auto name = [&](std::string& out) { out.append(group->names[*group->id]); };
  const auto done = [group, then = std::move(then)](const Settled& settled) {
    group->settled[*group->id] = settled;
    group->id_is_used = !settled.decision.allowed;
    then();
  };
  Ask(std::move(member), name, {}, {.state = group->state, .goes_on = done});
}

void SharedDecider::ConcludeGroup(const std::shared_ptr<Group>& group) {
  if (!group->id || group->id_is_used) return group->denied ? GiveBack(group) : group->Finish();
  AskId(group, group->denied ? Operation::kPeek : Operation::kTake, [this, group] {
    group->denied = group->denied || group->id_is_used;
    group->denied ? GiveBack(group) : group->Finish();
  });
}

void SharedDecider::AskNext(const std::shared_ptr<Group>& group) {
  if (group->next == group->order.size()) return ConcludeGroup(group);
  const size_t index = group->order[group->next];
  Member member = group->members[index];
  // After one member has denied, later members are only peeked at, unless they count the denied
  // request.
  if (group->denied && member.operation == Operation::kTake && !group->CountsDenied(index)) {
    member.operation = Operation::kPeek;
  }
  group->progress[index].took = member.operation == Operation::kTake;
  const auto name = [&](std::string& out) { out.append(group->names[index]); };
  const auto done = [this, group, index](const Settled& settled) {
    group->settled[index] = settled;
    if (!settled.decision.allowed) {
      group->denied = true;
      group->progress[index].limit_denies = settled.mode != Mode::kClosed;
    }
    ++group->next;
    AskNext(group);
  };
  Settled settled;
  Await await;
  if (SettleHere(TakeOf(member), member.terms, name, shared_.Now(), settled, await))
    return done(settled);
  Ask(std::move(member), name, await, {.state = group->state, .goes_on = done});
}

// The takes of members are undone, and members that were peeked at report their rest. Members that
// count requests denied by their rule are different: one that has not counted the request does so
// now; one that has, and has too little left for another such request, is asked when it would allow
// one.
void SharedDecider::GiveBack(const std::shared_ptr<Group>& group) {
  group->answers_open = 1;
  for (const size_t index : group->order) {
    Member member = group->members[index];
    const Settled& settled = group->settled[index];
    if (member.operation != Operation::kTake || member.cost == 0 || settled.mode == Mode::kOpen)
      continue;
    const bool counts = group->CountsDenied(index);
    const bool took = group->progress[index].took;
    const bool counts_now = counts && !took && settled.mode != Mode::kClosed;
    if (!counts_now && !settled.decision.allowed) continue;
    if (counts && took && settled.decision.remaining >= member.cost) continue;
    // A look that a lease has answered says how much is left.
    if (!counts && !took && settled.mode == Mode::kLeased) continue;
    const bool gives_back = took && !counts;
    if (gives_back && !TakesRefunds(*member.limit)) continue;
    if (gives_back) {
      BecomeUndo(member, settled);
    } else if (!counts_now) {
      member.operation = Operation::kPeek;
    }
    if (!took && !counts) member.cost = 0;
    if (counts_now && settled.mode == Mode::kLeased) group->settled[index].mode = Mode::kExact;
    if (settled.mode == Mode::kLocal) {
      group->settled[index].decision = local_.DecideByShare(member, group->names[index]);
      continue;
    }
    if (gives_back) {
      UndoFromLeases(member);
      if (member.cost == 0) continue;
    }
    ++group->answers_open;
    AskForGroup(group, index, member);
  }
  if (--group->answers_open == 0) group->Finish();
}

// An undo, a peek, or a request that is counted although another limit of its rule denied it.
void SharedDecider::AskForGroup(const std::shared_ptr<Group>& group, size_t index,
                                const Member& member) {
  const bool gives_back =
      member.operation == Operation::kUndo && IsLeased(*member.limit, member.terms);
  shared_.Ask(RequestOf(member, group->names[index]), [this, group, index, gives_back,
                                                       held = HeldFor(member), asked = member](
                                                          const store::SharedAnswer& answer) {
    // If the undo fails, the cost stays consumed: too few admissions rather than too many.
    if (answer.status.ok()) {
      if (gives_back) leases_->OnRefunded(asked.key, answer.decision.remaining);
      group->settled[index].decision = ToldOf(asked, answer.decision, held);
      Member look = group->members[index];
      if (asked.operation == Operation::kTake && answer.decision.remaining < look.cost) {
        look.operation = Operation::kPeek;
        return AskForGroup(group, index, look);
      }
    }
    if (--group->answers_open == 0) group->Finish();
  });
}

}  // namespace headgate::limiter::shared
