// The services of an event loop for code on its thread: a call later, at a time, or at the end of
// this turn.
//
// A turn handles the result of one poll: every ready socket and every due timer. Code that sends
// for many connections registers for the end of the turn, and writes once for all of them. A
// net::Server has one such loop per thread; tests and tools run one by themselves.
#pragma once

#include <functional>
#include <memory>

#include "headgate/base/clock.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace headgate::net {

class EventLoop {
 public:
  // Is called once at the end of a turn in which it was handed to AtEndOfTurn. Leaves the loop when
  // it goes.
  class Hook {
   public:
    Hook(EventLoop& loop, std::function<void()> call) : loop_(loop), call_(std::move(call)) {}
    ~Hook() { loop_.Forget(*this); }
    Hook(const Hook&) = delete;

   private:
    friend class EventLoop;
    EventLoop& loop_;
    std::function<void()> call_;
    bool registered_ = false;
    Hook* next_ = nullptr;
  };

  // `clock` must outlive the loop, and the loop whoever lives on it.
  explicit EventLoop(const base::Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;

  // From any thread: runs `work` on the loop's thread, in a later turn. Work that has not run when
  // the loop goes never does.
  void Post(std::function<void()> work);
  // From any thread: Run returns. Nothing runs afterwards.
  void Stop();

  // The rest on the loop's thread alone (or while nobody runs it).
  void AtEndOfTurn(Hook& hook);
  base::BootTime Now() const { return clock_.BootNow(); }

  // Turns until Stop.
  void Run();
  // Turns until `done`, which is asked after each piece of work. False where that takes longer than
  // `timeout`.
  bool RunUntil(const std::function<bool()>& done, base::Duration timeout);

  boost::asio::io_context& io();  // for net

 private:
  struct State;
  void EndTurn();
  void Forget(Hook& hook);

  const base::Clock& clock_;
  Hook* first_ = nullptr;  // of those that are registered
  Hook** last_ = &first_;
  std::unique_ptr<State> state_;
};

// Calls once when a time has come, and never before; setting it to a later time costs nothing, also
// from its call. It waits by CLOCK_MONOTONIC: late by as long as the machine slept, so that who
// must not be late looks at Now() too.
class Timer {
 public:
  Timer(EventLoop& loop, std::function<void()> call);
  ~Timer();
  Timer(const Timer&) = delete;

  void Set(base::BootTime at);
  void Cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace headgate::net
