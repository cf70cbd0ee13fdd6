#include "headgate/net/event_loop.h"

#include <algorithm>

#include "headgate/base/check.h"

namespace headgate::net {
namespace {

// The loop that this thread is running.
thread_local const EventLoop* running_here = nullptr;

class RunningHere {
 public:
  explicit RunningHere(const EventLoop& loop) : before_(std::exchange(running_here, &loop)) {}
  ~RunningHere() { running_here = before_; }
  RunningHere(const RunningHere&) = delete;

 private:
  const EventLoop* const before_;
};

}  // namespace

EventLoop::EventLoop(const base::Clock& clock) : clock_(clock) {}

// A loop takes the posted work before it waits, so its own posts need not wake it.
void EventLoop::Post(std::function<void()> work) {
  bool is_first;
  {
    const std::lock_guard lock(mutex_);
    is_first = posted_.empty();
    posted_.push_back(std::move(work));
    has_posted_ = true;
  }
  if (is_first && running_here != this) sockets_.Wake();
}

void EventLoop::Stop() {
  stopped_ = true;
  sockets_.Wake();
}

void EventLoop::Run() {
  const RunningHere here(*this);
  while (!stopped_) Turn();
}

bool EventLoop::RunUntil(const std::function<bool()>& done, base::Duration timeout) {
  const RunningHere here(*this);
  bool in_time = true;
  Timer deadline(*this, [&] { in_time = false; });
  deadline.SetAfter(timeout);
  while (!done()) {
    if (!in_time) return false;
    Turn();
  }
  return true;
}

void EventLoop::Turn() {
  HEADGATE_CHECK(!std::exchange(in_turn_, true));
  SetAlarm();
  sockets_.Poll(/*may_wait=*/!has_posted_ && first_ == nullptr);
  RunPosted();
  CallDueTimers();
  EndTurn();
  in_turn_ = false;
}

// An alarm that comes too early is cheaper than setting the alarm again each time a timer is put
// off.
void EventLoop::SetAlarm() {
  if (armed_.empty() || (alarm_ && *alarm_ <= armed_.begin()->first)) return;
  alarm_ = armed_.begin()->first;
  sockets_.WakeAt(*alarm_);
}

// Work that is posted meanwhile runs in the next turn.
void EventLoop::RunPosted() {
  if (!has_posted_) return;
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
    has_posted_ = false;
  }
  for (std::function<void()>& work : running_) std::exchange(work, nullptr)();
  running_.clear();
}

void EventLoop::CallDueTimers() {
  if (armed_.empty() && !alarm_) return;
  const base::MonotonicTime now = base::MonotonicNow();
  if (alarm_ && *alarm_ <= now) alarm_.reset();
  while (!armed_.empty() && armed_.begin()->first <= now) armed_.begin()->second->OnWaited();
}

void EventLoop::AtEndOfTurn(Hook& hook) {
  if (hook.registered_) return;
  hook.registered_ = true;
  hook.next_ = nullptr;
  *last_ = &hook;
  last_ = &hook.next_;
}

void EventLoop::EndTurn() {
  while (first_ != nullptr) {
    Hook& hook = *first_;
    first_ = hook.next_;
    if (first_ == nullptr) last_ = &first_;
    hook.registered_ = false;
    hook.call_();
  }
}

void EventLoop::Forget(Hook& hook) {
  if (!hook.registered_) return;
  Hook** at = &first_;
  while (*at != &hook) at = &(*at)->next_;
  *at = hook.next_;
  if (last_ == &hook.next_) last_ = at;
}

Timer::Timer(EventLoop& loop, std::function<void()> call)
    : loop_(loop), call_(std::make_shared<const std::function<void()>>(std::move(call))) {}

Timer::~Timer() { Disarm(); }

void Timer::Set(base::BootTime at) {
  due_ = at;
  if (const base::MonotonicTime end = EndOf(at - loop_.Now()); !armed_ || end < *armed_) Arm(end);
}

void Timer::SetAfter(base::Duration wait) {
  due_ = loop_.Now();
  Arm(EndOf(wait));
}

base::MonotonicTime Timer::EndOf(base::Duration wait) {
  return base::MonotonicNow() + std::min(wait, base::kDurationMax);
}

void Timer::Arm(base::MonotonicTime end) {
  Disarm();
  armed_ = end;
  loop_.armed_.emplace(*armed_, this);
}

void Timer::Disarm() {
  if (armed_) loop_.armed_.erase({*armed_, this});
  armed_.reset();
}

void Timer::OnWaited() {
  Disarm();
  if (!due_) return;
  if (const base::Duration left = *due_ - loop_.Now(); left > base::Duration(0))
    return Arm(EndOf(left));
  due_.reset();
  const auto call = call_;
  (*call)();
}

}  // namespace headgate::net
