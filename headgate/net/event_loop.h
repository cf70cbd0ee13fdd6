// The services of an event loop for code on its thread: calls later, at a given time, or at the end
// of this turn.
//
// A turn handles the result of one poll: every ready socket, then the work that was posted, then
// every due timer. Code that sends on many connections registers for the end of the turn and then
// writes once for all of them. A net::Server has one such loop per thread; tests and tools run one
// themselves.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/monotonic_time.h"
#include "headgate/net/socket_poller.h"

namespace headgate::net {

class Timer;

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

  // `clock` must outlive the loop, and the loop must outlive everything registered with it. Throws
  // std::system_error if the system denies a descriptor.
  explicit EventLoop(const base::Clock& clock);
  EventLoop(const EventLoop&) = delete;

  // Callable from any thread: runs `work` on the loop's thread, in a later turn. Work that has not
  // run when the loop is destroyed never runs.
  void Post(std::function<void()> work);
  // Callable from any thread: makes Run return after the current turn, and from then on at once.
  void Stop();

  // The other functions may be called only on the loop's thread, or while the loop is not running.
  void AtEndOfTurn(Hook& hook);
  base::BootTime Now() const { return clock_.BootNow(); }

  // Not from within a call of this loop: runs turns until Stop.
  void Run();
  // The same until `done`, which is checked after each turn. Returns false if it was not done
  // after a wait of this length.
  bool RunUntil(const std::function<bool()>& done, base::Duration timeout);

  SocketPoller& sockets() { return sockets_; }  // for net

 private:
  friend class Timer;
  using Armed = std::pair<base::MonotonicTime, Timer*>;

  void Turn();
  void SetAlarm();
  void RunPosted();
  void CallDueTimers();
  void EndTurn();
  void Forget(Hook& hook);

  const base::Clock& clock_;
  SocketPoller sockets_;
  std::set<Armed> armed_;
  std::optional<base::MonotonicTime> alarm_;  // when the poller will be woken for the timers
  Hook* first_ = nullptr;                     // list of registered hooks
  Hook** last_ = &first_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> has_posted_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::vector<std::function<void()>> running_;
  bool in_turn_ = false;
};

// Calls once at the set time, never before. Setting it to a later time is free, even from within
// its call. It waits by CLOCK_MONOTONIC, which stops during suspend, so a call may be late by the
// length of the suspend. Callers with hard deadlines must also check Now().
class Timer {
 public:
  // `call` may destroy the timer.
  Timer(EventLoop& loop, std::function<void()> call);
  ~Timer();
  Timer(const Timer&) = delete;

  void Set(base::BootTime at);
  // Calls after a wait of this length, whatever the loop's clock says then.
  void SetAfter(base::Duration wait);
  void Cancel() { due_.reset(); }

 private:
  friend class EventLoop;
  static base::MonotonicTime EndOf(base::Duration wait);
  void Arm(base::MonotonicTime end);
  void Disarm();
  void OnWaited();

  EventLoop& loop_;
  const std::shared_ptr<const std::function<void()>> call_;
  std::optional<base::BootTime> due_;  // the requested time
  // When the loop calls OnWaited: at `due_` or earlier.
  std::optional<base::MonotonicTime> armed_;
};

}  // namespace headgate::net
