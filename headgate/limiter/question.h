// A request that waits for a shared store, until it is answered.
//
//   Check ──▶ answered at once: the question is not used
//         ──▶ waits: the question takes over the request, with its own copy of the texts, the rules
//             that decide it, and what is known so far
//   on_ready ──▶ Continue takes the next step ──▶ answered, or waits again
//
// The caller need not keep the bytes of the request.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "headgate/limiter/pending.h"
#include "headgate/limiter/request.h"

namespace headgate::limiter {

struct Task;
struct Work;

// One per conversation, for one request at a time. For one thread.
class Question {
 public:
  // Calls `on_ready` once a request that waits can be continued, but never from within a call that
  // asks.
  explicit Question(std::function<void()> on_ready);
  // Drops calls in flight. The requests that they consume stay consumed.
  ~Question();
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  // Calls `on_resumed` whenever the decider decides more of this request after an answer to another
  // one: for a caller that records what each request causes.
  void TellResumed(std::function<void()> on_resumed) {
    pending_.TellResumed(std::move(on_resumed));
  }

  // Whether the store owes an answer.
  bool waiting() const { return pending_.waiting(); }
  // Whether a request has begun and is not answered yet.
  bool open() const { return work_ != nullptr; }
  // The request that began last, if it had to wait. Valid until the next one begins.
  const Request& request() const { return kept_.get(); }

  // The memory that grows with the request.
  size_t kept_bytes() const { return kept_.bytes(); }

 private:
  friend class Checker;
  friend struct Task;

  Pending pending_;
  KeptRequest kept_;
  std::unique_ptr<Work> work_;  // what is known so far; null if not open
};

}  // namespace headgate::limiter
