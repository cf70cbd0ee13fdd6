// The answers to changes of counters, for a conversation that may have to wait for them. Answers
// keep the order of the requests, so a pipeline of them takes one round trip. One per conversation,
// for one thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/algorithm/counter.h"
#include "headgate/base/check.h"
#include "headgate/base/status.h"

namespace headgate::limiter {

using CountAnswer = absl::StatusOr<algorithm::CounterAnswer>;

class PendingCounts {
 public:
  using Done = std::function<void(const CountAnswer& answer)>;

  // Calls `on_ready` once no answer is awaited any more, but never from within a call that asks.
  explicit PendingCounts(std::function<void()> on_ready) : state_(std::make_shared<State>()) {
    state_->on_ready = std::move(on_ready);
  }
  // Drops the answers to calls in flight; the counters change nevertheless.
  ~PendingCounts() { state_->on_ready = nullptr; }
  PendingCounts(const PendingCounts&) = delete;
  PendingCounts& operator=(const PendingCounts&) = delete;

  bool waiting() const { return state_->open > 0; }
  // Answers that have not been taken, including those that are awaited.
  size_t size() const { return state_->answers.size() - taken_; }
  bool empty() const { return size() == 0; }

  // The oldest answer. Not empty, and not waiting.
  CountAnswer TakeNext() {
    HEADGATE_DCHECK(!waiting() && !empty());
    CountAnswer answer = std::move(state_->answers[taken_++]);
    if (empty()) Clear();
    return answer;
  }
  // Not waiting.
  void Clear() {
    state_->answers.clear();
    taken_ = 0;
  }

  // ---- For a Decider

  void Add(CountAnswer answer) { state_->answers.push_back(std::move(answer)); }
  // `ask` must cause one call of its argument, now or later. Returns false if an answer is awaited.
  bool Ask(absl::FunctionRef<void(Done)> ask) {
    const size_t index = state_->answers.size();
    Add(absl::UnknownError("no answer yet"));
    ++state_->open;
    state_->asking = true;
    ask([state = state_, index](const CountAnswer& answer) {
      state->answers[index] = answer;
      if (--state->open == 0 && !state->asking && state->on_ready) state->on_ready();
    });
    state_->asking = false;
    return !waiting();
  }

 private:
  // Shared with the calls in flight.
  struct State {
    std::function<void()> on_ready;
    std::vector<CountAnswer> answers;
    size_t open = 0;
    bool asking = false;
  };

  std::shared_ptr<State> state_;
  size_t taken_ = 0;
};

}  // namespace headgate::limiter
