// The decisions that a shared store has not given yet, for one batch of requests. They are stored
// here when the answers come. For one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/limiter/settled.h"

namespace headgate::limiter {

struct PublishedRules;

class Pending {
 public:
  // Calls `on_ready` once all answers have come, but never from within a call that asks.
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
  // The answers in the order of the requests, once all have come; valid until Forget, which the
  // caller calls when it has used them.
  std::span<const Settled> settled() const { return state_->settled; }
  void Forget() {
    HEADGATE_DCHECK(!waiting());
    state_->settled.clear();
  }
  // Keeps the rules as long as this object, or a call in flight, needs them.
  void Keep(std::shared_ptr<const PublishedRules> rules) { state_->rules = std::move(rules); }
  const std::shared_ptr<const PublishedRules>& rules() const { return state_->rules; }

  // ---- For a Decider whose answers come later

  // Shared with the calls in flight, which may outlive the Pending.
  struct State {
    std::function<void()> on_ready;
    std::function<void()> on_resumed;
    std::vector<Settled> settled;  // of this request, in the order in which its takes are asked
    size_t open = 0;               // the number of outstanding answers
    std::shared_ptr<const PublishedRules> rules;

    void Close() {
      if (--open == 0 && on_ready) on_ready();
    }
  };
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace headgate::limiter
