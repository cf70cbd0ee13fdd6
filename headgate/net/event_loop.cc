#include "headgate/net/event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "headgate/net/socket_poller.h"

namespace headgate::net {
namespace {

std::chrono::steady_clock::duration Steady(base::Duration d) {
  return std::chrono::ceil<std::chrono::steady_clock::duration>(d);
}

}  // namespace

struct EventLoop::State {
  explicit State(EventLoop& loop) : sockets(io, [&loop] { loop.EndTurn(); }) {}

  boost::asio::io_context io{1};
  // Without pending work, the context would stop for good.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> open{io.get_executor()};
  SocketPoller sockets;
};

EventLoop::EventLoop(const base::Clock& clock)
    : clock_(clock), state_(std::make_unique<State>(*this)) {}

EventLoop::~EventLoop() = default;

boost::asio::io_context& EventLoop::io() { return state_->io; }

SocketPoller& EventLoop::sockets() { return state_->sockets; }

void EventLoop::Post(std::function<void()> work) { boost::asio::post(state_->io, std::move(work)); }

void EventLoop::Stop() { state_->io.stop(); }

void EventLoop::Run() { state_->io.run(); }

bool EventLoop::RunUntil(const std::function<bool()>& done, base::Duration timeout) {
  const base::BootTime deadline = Now() + timeout;
  while (!done()) {
    const base::Duration left = deadline - Now();
    if (left <= base::Duration(0)) return false;
    state_->io.run_one_for(left);
  }
  return true;
}

// The poller ends the turn itself. Other work posts the end of the turn, behind the work that is
// ready.
void EventLoop::AtEndOfTurn(Hook& hook) {
  if (hook.registered_) return;
  if (first_ == nullptr && !state_->sockets.calling())
    boost::asio::post(state_->io, [this] { EndTurn(); });
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

struct Timer::State : std::enable_shared_from_this<Timer::State> {
  State(EventLoop& event_loop, std::function<void()> timer_call)
      : loop(event_loop), call(std::move(timer_call)), timer(event_loop.io()) {}

  void Arm(base::BootTime at) {
    armed = at;
    timer.expires_after(Steady(at - loop.Now()));
    timer.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
      if (error) return;
      if (const auto state = self.lock()) state->OnExpired();
    });
  }

  void OnExpired() {
    armed.reset();
    if (!due) return;
    if (loop.Now() < *due) return Arm(*due);
    due.reset();
    call();
  }

  EventLoop& loop;
  std::function<void()> call;
  boost::asio::steady_timer timer;
  std::optional<base::BootTime> due;    // the requested time
  std::optional<base::BootTime> armed;  // when the system's timer expires: at `due` or earlier
};

Timer::Timer(EventLoop& loop, std::function<void()> call)
    : state_(std::make_shared<State>(loop, std::move(call))) {}

Timer::~Timer() = default;

void Timer::Set(base::BootTime at) {
  state_->due = at;
  if (!state_->armed || at < *state_->armed) state_->Arm(at);
}

void Timer::Cancel() { state_->due.reset(); }

}  // namespace headgate::net
