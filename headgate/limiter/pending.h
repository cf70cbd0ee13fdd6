// The place of a conversation that waits for decisions of a shared store.
//
// Decisions that take time are settled here when the answers have come. The caller takes them from
// here, or asks the same again and finds them. Keeps nothing of the request itself, so the request
// may stay where it arrived. One per conversation, which waits for one request at a time. Used on
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
  // `on_ready` is called once the request can be asked again, never from within a call that asks.
  explicit Pending(std::function<void()> on_ready) : state_(std::make_shared<State>()) {
    state_->on_ready = std::move(on_ready);
  }
  // Calls in flight are forgotten; the requests that they consume stay consumed.
  ~Pending() { state_->on_ready = nullptr; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  bool waiting() const { return state_->open > 0; }
  // The answers, in the order of the requests, once none is awaited; valid until Forget, which is
  // called when the requests are answered for good.
  std::span<const Settled> settled() const { return state_->settled; }
  void Forget() {
    HEADGATE_DCHECK(!waiting());
    state_->settled.clear();
    state_->asked_again = 0;
    state_->rules = nullptr;
  }

  // ---- For a request that is asked in parts, one after the other, and again from the first when
  // it waits no longer.

  // Begins to ask, perhaps again. Returns the rules that the request is decided by: those of its
  // first round.
  const std::shared_ptr<const PublishedRules>& BeginRound(
      const std::shared_ptr<const PublishedRules>& rules) {
    state_->asked_again = 0;
    if (state_->rules == nullptr) state_->rules = rules;
    return state_->rules;
  }
  // The next part: as an earlier round has settled it, else as `decide` does. False: the request
  // waits.
  bool Resume(base::Strided<Settled> part, absl::FunctionRef<bool()> decide) {
    if (waiting()) return false;
    std::vector<Settled>& settled = state_->settled;
    if (state_->asked_again < settled.size()) {
      HEADGATE_DCHECK(settled.size() - state_->asked_again >= part.size());
      for (size_t i = 0; i < part.size(); ++i) part[i] = settled[state_->asked_again + i];
    } else {
      if (!decide()) return false;
      // Should a later part have to wait, this one is asked again with it.
      for (size_t i = 0; i < part.size(); ++i) settled.push_back(part[i]);
    }
    state_->asked_again += part.size();
    return true;
  }

 private:
  friend class SharedDecider;

  // Shared with the answers that are under way.
  struct State {
    std::function<void()> on_ready;
    std::vector<Settled> settled;  // of this request, in the order in which its takes are asked
    size_t asked_again = 0;        // how many of them this time round has come by
    size_t open = 0;               // answers to come
    std::shared_ptr<const PublishedRules> rules;  // those that the request is decided by

    void Close() {
      if (--open == 0 && on_ready) on_ready();
    }
  };

  std::shared_ptr<State> state_;
};

}  // namespace headgate::limiter
