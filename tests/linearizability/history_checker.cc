#include "tests/linearizability/history_checker.h"

#include <algorithm>
#include <list>

#include <fmt/format.h>

#include "absl/container/flat_hash_set.h"
#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/check.h"

namespace headgate::linearizability {
namespace {

using algorithm::BucketState;
using algorithm::Decision;

// A call or a return in the order of time.
struct Event {
  size_t operation;
  bool is_return;
};
using Events = std::list<Event>;

std::string Describe(const Operation& operation) {
  const char* const names[] = {"take", "peek", "refund", "reset"};
  const std::string answer =
      operation.answer
          ? fmt::format("{}, {} left", operation.answer->allowed ? "allowed" : "denied",
                        operation.answer->remaining)
          : "no answer";
  return fmt::format("{} {} in [{}, {}]: {}", names[static_cast<size_t>(operation.operation)],
                     operation.cost, operation.called, operation.returned, answer);
}

class Search {
 public:
  Search(const algorithm::Limit& limit, base::Instant at, const std::vector<Operation>& history)
      : limit_(limit), at_(at), history_(history), done_((history.size() + 7) / 8, '\0') {
    std::vector<Event> events;
    for (size_t i = 0; i < history.size(); ++i) {
      events.push_back({i, false});
      events.push_back({i, true});
    }
    // If a call and a return are simultaneous, the two requests overlap.
    std::stable_sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
      const int64_t a_at = TimeOf(a);
      const int64_t b_at = TimeOf(b);
      return a_at != b_at ? a_at < b_at : a.is_return < b.is_return;
    });
    events_.assign(events.begin(), events.end());
    returns_.resize(history.size());
    for (const Operation& operation : history) answered_left_ += operation.answer.has_value();
    for (auto event = events_.begin(); event != events_.end(); ++event) {
      if (event->is_return) returns_[event->operation] = event;
    }
  }

  std::string Run() {
    auto event = AfterReads();
    // Operations without an answer need not have been done.
    while (answered_left_ > 0) {
      HEADGATE_CHECK(event != events_.end());
      if (!event->is_return && TryNext(event)) {
        event = AfterReads();
      } else if (!event->is_return) {
        ++event;
      } else if (chosen_.empty()) {
        return "no order explains: " + Describe(history_[furthest_]);
      } else {
        furthest_ = chosen_.size() >= deepest_ ? event->operation : furthest_;
        deepest_ = std::max(deepest_, chosen_.size());
        // No other choice is better than a read.
        while (chosen_.size() > 1 && chosen_.back().is_read) TakeBack();
        event = std::next(TakeBack());
      }
    }
    return "";
  }

 private:
  // A request that was chosen as the next one, and how to undo that.
  struct Choice {
    size_t operation;
    BucketState before;
    bool is_read;                   // the bucket stays as it is
    Events::iterator after_call;    // the event behind its call
    Events::iterator after_return;  // the event behind its return
    Events removed;                 // both of its events
  };

  int64_t TimeOf(const Event& event) const {
    const Operation& operation = history_[event.operation];
    return event.is_return ? operation.returned : operation.called;
  }

  // Whether the bucket gives the recorded answer; changes the state.
  bool Gives(const Operation& operation, BucketState& state) const {
    algorithm::NoHits no_hits;
    Decision decision;
    switch (operation.operation) {
      case store::Operation::kTake:
        decision = Decide(limit_, state, no_hits, operation.cost, at_);
        break;
      case store::Operation::kPeek: {
        BucketState copy = state;
        decision = Decide(limit_, copy, no_hits, operation.cost, at_);
        break;
      }
      case store::Operation::kRefund:
        decision = *Refund(limit_, state, no_hits, operation.cost, at_);
        break;
      case store::Operation::kCharge:
        decision = Charge(limit_, state, no_hits, operation.cost, at_);
        break;
      case store::Operation::kReset:
      case store::Operation::kUndo:  // no client asks for it
        return false;
    }
    return !operation.answer ||
           *operation.answer ==
               Operation::Answer{.allowed = decision.allowed, .remaining = decision.remaining};
  }

  // Whether a bucket that gives this answer is left unchanged by the request. (A refund may leave a
  // full bucket as it is, and change another one, with the same answer.)
  static bool IsRead(const Operation& operation) {
    return operation.answer &&
           (operation.operation == store::Operation::kPeek || !operation.answer->allowed);
  }

  // Chooses every read that may be next. Whatever order there is, it stays possible if such a
  // request is moved to the front. Returns where to continue.
  Events::iterator AfterReads() {
    for (auto event = events_.begin(); event != events_.end() && !event->is_return;) {
      const auto call = event++;
      BucketState state = state_;
      // The return may be the event that is next.
      if (IsRead(history_[call->operation]) && Gives(history_[call->operation], state) &&
          TryNext(call))
        event = events_.begin();
    }
    return events_.begin();
  }

  bool TryNext(Events::iterator call) {
    const size_t operation = call->operation;
    BucketState state = state_;
    if (!Gives(history_[operation], state)) return false;
    const bool lost = !history_[operation].answer.has_value();
    if (lost && (state == state_ || HasEarlierTwin(call))) return false;
    Flip(operation);
    if (!seen_.insert(done_ + Bytes(state)).second) {
      Flip(operation);
      return false;
    }
    Choice choice{.operation = operation,
                  .before = state_,
                  .is_read = IsRead(history_[operation]),
                  .after_call = {},
                  .after_return = std::next(returns_[operation]),
                  .removed = {}};
    choice.removed.splice(choice.removed.end(), events_, returns_[operation]);
    choice.after_call = std::next(call);
    choice.removed.splice(choice.removed.begin(), events_, call);
    state_ = state;
    answered_left_ -= !lost;
    chosen_.push_back(std::move(choice));
    return true;
  }

  // Whether the same request was sent earlier, has no answer either, and is not done yet. It could
  // be done in place of this one, so only one of the two orders is searched.
  bool HasEarlierTwin(Events::iterator call) const {
    const Operation& operation = history_[call->operation];
    return std::any_of(events_.begin(), Events::const_iterator(call), [&](const Event& event) {
      const Operation& other = history_[event.operation];
      return !event.is_return && !other.answer && other.cost == operation.cost &&
             other.operation == operation.operation;
    });
  }

  // Undoes the last choice, and returns its call.
  Events::iterator TakeBack() {
    Choice choice = std::move(chosen_.back());
    chosen_.pop_back();
    const auto call = choice.removed.begin();
    const auto its_return = std::next(call);
    events_.splice(choice.after_call, choice.removed, call);
    events_.splice(choice.after_return, choice.removed, its_return);
    state_ = choice.before;
    answered_left_ += history_[choice.operation].answer.has_value();
    Flip(choice.operation);
    return call;
  }

  void Flip(size_t operation) {
    done_[operation / 8] = static_cast<char>(done_[operation / 8] ^ (1 << (operation % 8)));
  }
  static std::string Bytes(const BucketState& state) {
    return fmt::format("{} {} {}", state.edge, state.count, state.seen.ns);
  }

  const algorithm::Limit& limit_;
  const base::Instant at_;
  const std::vector<Operation>& history_;
  Events events_;
  std::vector<Events::iterator> returns_;
  BucketState state_;
  std::string done_;          // one bit for each request
  size_t answered_left_ = 0;  // requests with an answer that are not done yet
  std::vector<Choice> chosen_;
  absl::flat_hash_set<std::string> seen_;
  size_t deepest_ = 0;
  size_t furthest_ = 0;  // the request that could not be explained by the longest order
};

}  // namespace

std::string Check(const algorithm::Limit& limit, base::Instant at,
                  const std::vector<Operation>& history) {
  return Search(limit, at, history).Run();
}

}  // namespace headgate::linearizability
