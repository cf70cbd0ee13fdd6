// One connection on its loop: reads, feeds the session, writes; keeps the deadlines. Internal to net.
//
//   choosing --session chosen--> serving --session closes--> lingering --peer closes or time is up--> gone
//
// A connection without a place is refused: it lives only until the chooser knows the words that its client understands.
//
// Runs as one coroutine, which owns it. While it rests for the peer's next words, an answer that was decided elsewhere
// is written without it (Resume): it gets up only for what a single write does not end.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "headgate/base/time.h"
#include "headgate/net/connection_limits.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/server.h"
#include "headgate/net/session.h"

namespace headgate::net {

class Loop;

class Connection {
 public:
  Connection(Loop& loop, FileDescriptor socket, std::optional<ConnectionLimits::Place> place, const Peer& peer,
             const SessionChooser& choose_session);
  ~Connection();
  Connection(const Connection&) = delete;

  // The whole life.
  static boost::asio::awaitable<void> Run(std::unique_ptr<Connection> connection);

  // Called by the loop between the coroutine's steps.
  void OnTick(base::Instant now);
  void OnDrain();
  void CutOff();
  // Called when the session need not wait any longer: answers while the coroutine is suspended in a read.
  void Resume(base::Instant now);

  // Bytes in its buffers times how long they have been held; 0 if there are few.
  uint64_t BufferCost(base::Instant now) const;
  // Says why, frees the buffers at once, and closes.
  void GiveUp(Session::GivenUp why, base::Instant now);

  Connection* next() const { return next_; }
  bool in_request() const {
    return waiting_ == Waiting::kForRestOfRequest || waiting_ == Waiting::kForWriter || waiting_ == Waiting::kForAnswer;
  }

 private:
  enum class Phase : uint8_t { kChoosing, kServing, kClosing };
  enum class Waiting : uint8_t { kForRequest, kForRestOfRequest, kForAnswer, kForWriter, kForPeerToClose };

  boost::asio::awaitable<void> Serve();
  boost::asio::awaitable<bool> WaitFor(boost::asio::posix::descriptor_base::wait_type what);
  boost::asio::awaitable<bool> Answer();
  boost::asio::awaitable<bool> WaitForAnswer();
  void Wake();
  boost::asio::awaitable<bool> WriteSlowly();
  boost::asio::awaitable<void> Linger();

  // One non-blocking read and what follows from it, up to the bytes of the answer in the loop's output.
  enum class ReadResult : uint8_t { kNothing, kSome, kEnd };
  ReadResult ReadOnce();
  void Handle(std::span<const char> input, base::Instant now);
  bool EnsureSession(std::span<const char> input);
  void CountBuffers(base::Instant now);
  void KeepRest(std::span<const char> input, size_t consumed);
  // Sends what the loop's output holds; what is not taken moves to `unsent_`.
  bool SendNow();

  // Between reads: sets the deadline of what comes next.
  void Rest(Waiting waiting, base::Instant now);
  void WaitUntil(Waiting waiting, base::Instant deadline) {
    waiting_ = waiting;
    deadline_ = deadline;
  }

  Loop& loop_;
  boost::asio::posix::stream_descriptor socket_;
  std::optional<ConnectionLimits::Place> place_;  // none: the connection is refused
  const Peer peer_;
  const SessionChooser& choose_session_;
  std::unique_ptr<Session> session_;
  Phase phase_ = Phase::kChoosing;
  bool more_ = false;       // the session has whole requests left in `rest_`
  bool at_rest_ = false;    // the coroutine waits for the peer to say more; an answer that comes meanwhile needs it not
  bool summoned_ = false;   // it is called from there, for what an answer has left to do
  bool woken_ = false;      // what the session waits for has come
  bool to_resume_ = false;  // the loop will
  bool cut_off_ = false;    // a deadline passed, or the server stops: nothing more is written
  Waiting waiting_ = Waiting::kForRequest;
  base::Instant deadline_;
  // Never rings; cut short when the answer has come. Where a peer that waits for an answer says more, or goes.
  std::optional<boost::asio::steady_timer> answer_;
  std::string rest_;    // input that the session has not consumed
  std::string unsent_;  // output that the peer has not taken
  size_t held_ = 0;     // bytes that the loop counts for these buffers and the session's
  base::Instant held_since_;
  Connection* next_ = nullptr;
  Connection* previous_ = nullptr;
};

}  // namespace headgate::net
