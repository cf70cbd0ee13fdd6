// The conversation with HAProxy on one connection. HAProxy says hello, and then notifies about
// requests; each is answered with variables of its transaction as soon as it is decided, in any
// order.
//
//   HELLO ──▶ HELLO        NOTIFY ──▶ ACK: status, outcome, retry_after, ratelimit, …
//
// `status` is 200 if the request passes. The fields of the limit become variables: RateLimit-Policy
// is ratelimit_policy. HAProxy says how long a frame may be. `status` and `outcome` always fit; if
// the fields do not, the longest are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "headgate/answer/limit_answer.h"
#include "headgate/front/spoe/hello_pace.h"
#include "headgate/front/spoe/notify.h"
#include "headgate/gate/judge.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/session.h"
#include "headgate/wire/spop.h"

namespace headgate::front::spoe {

// The parts of one loop that its sessions share. Not thread-safe.
struct Context {
  gate::Judge& judge;
  answer::LimitAnswer& answer;
  net::EventLoop& loop;
  gate::Counters& counters;
  // The next three report problems to the operator, because HAProxy does not log them. Each may be
  // empty. This one: an answer had no room for a field; called at most once.
  std::function<void(uint32_t frame_bytes_max)> on_left_out{};
  // A connection ends because a frame from HAProxy is not acceptable.
  std::function<void(wire::SpopStatus status, std::string_view why)> on_refused{};
  // HAProxy opens useless connections, and is slowed down (hello_pace.h).
  std::function<void(uint32_t frame_bytes_max)> on_vain{};
  HelloPace pace{};
};

class SpoeSession final : public net::Session {
 public:
  // The most requests of a connection that wait at the same time; more are answered as unavailable.
  static constexpr size_t kWaitingMax = 1024;

  // `context` must outlive the session.
  SpoeSession(Context& context, net::Peer peer);
  ~SpoeSession() override;

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }
  void OnDrain() override;

 private:
  // A request that waits for the shared store, or for its time in a queue.
  struct Waiting;

  // False if the connection ends.
  bool TakeFrame(std::string_view frame, std::string& output, base::Instant now);
  bool TakeHello(const wire::SpopFrame& frame, std::string& output);
  bool TakeNotify(const wire::SpopFrame& frame, std::string& output, base::Instant now);
  // Keeps the answer to the hello for a moment if HAProxy must be slowed down.
  void HoldHello(size_t begin, std::string& output);
  void AnswerReady(std::string& output, base::Instant now);
  // Writes the answer with the verdict, or keeps it until its time has come. Returns whether it is
  // written.
  bool Finish(Waiting& waiting, std::string& output, base::Instant now);
  void AppendAck(uint64_t stream_id, uint64_t frame_id, std::string& output, base::Instant now);
  // Appends as many fields of the verdict as the frame has room for, the shortest first.
  void AppendShortFields(size_t frame_begin, std::string& output, base::Instant now);
  // Ends the connection because of a frame from HAProxy. Always false.
  bool Refuse(wire::SpopStatus status, std::string_view message, std::string& output);
  void Disconnect(wire::SpopStatus status, std::string_view message, std::string& output);
  // The object for a request that may have to wait. Wait() appends it to the waiting requests;
  // otherwise the next request reuses it.
  Waiting& EnsureSpare(uint64_t stream_id, uint64_t frame_id, base::Instant now);
  void Wait();

  Context& context_;
  const net::Peer peer_;
  std::function<void()> wake_;
  Notify notify_;
  gate::Verdict verdict_;
  std::list<std::unique_ptr<Waiting>> waiting_;  // oldest first
  std::unique_ptr<Waiting> spare_;
  bool greeted_ = false;
  bool asked_ = false;      // was asked about a request, or is a health check
  std::string held_hello_;  // the answer, until its time has come
  base::BootTime hello_due_{0};
  std::unique_ptr<net::Timer> hello_timer_;
  bool closing_ = false;
  bool draining_ = false;
  uint64_t answered_ = 0;
  uint32_t frame_bytes_max_ = wire::kSpopFrameBytesMax;
};

}  // namespace headgate::front::spoe
