// The state of a conversation that waits for decisions of a shared store.
//
// Delayed decisions are stored here when the answers have come. The caller reads them here, or
// repeats its call, which then finds them. The request itself is not stored, so it may stay in the
// input buffer. There is one Pending per conversation, which waits for one request at a time. For
// one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/check.h"
#include "headgate/base/strided.h"
#include "headgate/limiter/settled.h"

namespace headgate::limiter {

struct PublishedRules;

class Pending {
 public:
  // Calls `on_ready` once the request can be asked again, but never from within a call that asks.
  explicit Pending(std::function<void()> on_ready) : state_(std::make_shared<State>()) {
    state_->on_ready = std::move(on_ready);
  }
  // Drops calls in flight; the requests that they consume stay consumed.
  ~Pending() { state_->on_ready = state_->on_resumed = nullptr; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // Calls `on_resumed` whenever the decider goes on with this request after an answer to another
  // one: for a caller that records what each request causes.
  void TellResumed(std::function<void()> on_resumed) { state_->on_resumed = std::move(on_resumed); }

  bool waiting() const { return state_->open > 0; }
  // Whether nothing was asked, or everything that was has been forgotten.
  bool empty() const { return !waiting() && state_->settled.empty(); }
  // The answers in the order of the requests, once all have come; valid until Forget, which the
  // caller calls when the requests are answered for good.
  std::span<const Settled> settled() const { return state_->settled; }
  void Forget() {
    HEADGATE_DCHECK(!waiting());
    state_->settled.clear();
    state_->asked_again = 0;
    state_->rules = nullptr;
  }

  // ---- For a request that is asked in parts, one after the other, and again from the first part
  // when it no longer has to wait.

  // Begins a round of asking. Returns the rules that decide the request: those of its first round.
  const std::shared_ptr<const PublishedRules>& BeginRound(
      const std::shared_ptr<const PublishedRules>& rules) {
    state_->asked_again = 0;
    if (state_->rules == nullptr) state_->rules = rules;
    return state_->rules;
  }
  // Decides the next part: with the answers of an earlier round, otherwise by `decide`. False: the
  // request has to wait.
  bool Resume(base::Strided<Settled> part, absl::FunctionRef<bool()> decide) {
    if (waiting()) return false;
    std::vector<Settled>& settled = state_->settled;
    if (state_->asked_again < settled.size()) {
      HEADGATE_DCHECK(settled.size() - state_->asked_again >= part.size());
      for (size_t i = 0; i < part.size(); ++i) part[i] = settled[state_->asked_again + i];
    } else {
      if (!decide()) return false;
      // If a later part has to wait, this part is asked again with it.
      for (size_t i = 0; i < part.size(); ++i) settled.push_back(part[i]);
    }
    state_->asked_again += part.size();
    return true;
  }

 private:
  friend class SharedDecider;

  // Shared with the calls in flight.
  struct State {
    std::function<void()> on_ready;
    std::function<void()> on_resumed;
    std::vector<Settled> settled;  // of this request, in the order in which its takes are asked
    size_t asked_again = 0;        // how many of them the present round has used
    size_t open = 0;               // the number of outstanding answers
    std::shared_ptr<const PublishedRules> rules;  // the rules that decide the request

    void Close() {
      if (--open == 0 && on_ready) on_ready();
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace headgate::limiter
