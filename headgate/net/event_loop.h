// The services of an event loop for code on its thread: calls later, at a given time, or at the end
// of this turn.
//
// A turn handles the result of one poll: every ready socket and every due timer. Code that sends on
// many connections registers for the end of the turn and then writes once for all of them. A
// net::Server has one such loop per thread; tests and tools run one themselves.
#pragma once

#include <functional>
#include <memory>

#include "headgate/base/clock.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace headgate::net {

class SocketPoller;

class EventLoop {
 public:
  // Called once at the end of each turn in which it was passed to AtEndOfTurn. Unregisters itself
  // on destruction.
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

  // `clock` must outlive the loop, and the loop must outlive everything registered with it.
  explicit EventLoop(const base::Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;

  // Callable from any thread: runs `work` on the loop's thread, in a later turn. Work that has not
  // run when the loop is destroyed never runs.
  void Post(std::function<void()> work);
  // Callable from any thread: makes Run return. Nothing runs afterwards.
  void Stop();

  // The other functions may be called only on the loop's thread, or while the loop is not running.
  void AtEndOfTurn(Hook& hook);
  base::BootTime Now() const { return clock_.BootNow(); }

  // Runs turns until Stop.
  void Run();
  // Runs turns until `done`, which is checked after each piece of work. Returns false on timeout.
  bool RunUntil(const std::function<bool()>& done, base::Duration timeout);

  boost::asio::io_context& io();  // for net
  SocketPoller& sockets();        // for Transport

 private:
  struct State;
  void EndTurn();
  void Forget(Hook& hook);

  const base::Clock& clock_;
  Hook* first_ = nullptr;  // list of registered hooks
  Hook** last_ = &first_;
  std::unique_ptr<State> state_;
};

// Calls once at the set time, never before. Resetting it to a later time costs nothing, even from
// within its call. It uses CLOCK_MONOTONIC, which stops during suspend, so a call may be late by
// the length of the suspend. Callers with hard deadlines must also check Now().
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
