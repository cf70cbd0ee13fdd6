// The end of a request that the rules let pass. Whatever becomes of it, its listeners are told
// exactly once: the response is complete, the client has gone, the upstream has failed, the pool
// refuses the request, a tunnel closes, the process drains.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/rule/status_count.h"

namespace headgate::proxy {

// The bytes of bodies, and of both directions of a tunnel. Answers of the proxy itself count
// nothing.
struct BodySizes {
  uint64_t request = 0;   // received from the client
  uint64_t response = 0;  // of the upstream's answer, as far as sent to the client
};

class EndListener {
 public:
  virtual ~EndListener() = default;
  // The head of the answer says how long the body is. At most once, before the end.
  virtual void OnResponseSize(uint64_t /*bytes*/, base::Instant /*now*/) {}
  // The head of the answer has this status. If `grpc_follows`, called again at the answer's end.
  virtual void OnStatus(const rule::AnswerStatus& /*status*/, base::Instant /*now*/) {}
  // The request was sent to the upstream, and its status will never be known. If neither this nor
  // OnStatus is called before the end, nothing of the request has reached the upstream.
  virtual void OnUnanswered(base::Instant /*now*/) {}
  // These bytes have passed so far. Called now and then, before the end.
  virtual void OnProgress(const BodySizes& /*sizes*/, base::Instant /*now*/) {}
  virtual void OnEnded(const BodySizes& sizes, base::Instant now) = 0;
};

// Moves along with the request. If it is destroyed, the request has ended, and nothing of it was
// sent.
class RequestEnd {
 public:
  RequestEnd() = default;
  RequestEnd(RequestEnd&&) = default;
  RequestEnd& operator=(RequestEnd&& other) noexcept {
    Tell({}, now_);
    listeners_ = std::move(other.listeners_);
    now_ = other.now_;
    return *this;
  }
  ~RequestEnd() { Tell({}, now_); }

  void Add(std::unique_ptr<EndListener> listener, base::Instant now) {
    listeners_.push_back(std::move(listener));
    now_ = now;
  }
  void TellResponseSize(uint64_t bytes, base::Instant now) {
    for (const auto& listener : listeners_) listener->OnResponseSize(bytes, now);
  }
  void TellStatus(const rule::AnswerStatus& status, base::Instant now) {
    for (const auto& listener : listeners_) listener->OnStatus(status, now);
  }
  void TellUnanswered(base::Instant now) {
    for (const auto& listener : listeners_) listener->OnUnanswered(now);
  }
  void TellProgress(const BodySizes& sizes, base::Instant now) {
    for (const auto& listener : listeners_) listener->OnProgress(sizes, now);
  }
  bool has_listeners() const { return !listeners_.empty(); }
  // Later calls do nothing.
  void Tell(const BodySizes& sizes, base::Instant now) {
    for (const auto& listener : std::exchange(listeners_, {})) listener->OnEnded(sizes, now);
  }

 private:
  std::vector<std::unique_ptr<EndListener>> listeners_;
  base::Instant now_{0};  // of the last listener
};

}  // namespace headgate::proxy
