// Settles costs by size and counts by status (rule/size_cost.h) of the requests of one loop: when
// the size or the status is known, and of long streams also in between.
//
//   less than taken ──▶ the surplus is undone, as far as it has not come back by itself
//   more than taken ──▶ the rest is charged. The bucket may be overdrawn by it, and denies until
//                       time has paid
//   not counted after all, or not sent ──▶ everything is undone
//
// With buckets of this process, everything is done within the call; otherwise the settlement waits
// for the store, and may outlive the request.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/proxy/held_requests.h"
#include "headgate/proxy/request_end.h"
#include "headgate/proxy/tick_wheel.h"

namespace headgate::proxy {

// In units. The loop writes, any thread reads.
struct SettleCounters {
  base::Counter taken{};     // beyond the reserve
  base::Counter returned{};  // excess units that were given back, as far as the bucket had not
                             // refilled by itself
  base::Counter lapsed{};    // excess units that were not given back: the limit has changed, or the
                             // store did not answer
  base::Counter forgotten{};  // missing units that were not taken: the limit is gone, or the store
                              // did not answer
};

class Settler {
 public:
  // Settlements that wait for the store although their requests have ended.
  static constexpr size_t kWaitingMax = size_t{1} << 16;

  // Everything must outlive this object. `deferred` is for work that continues in a later turn of
  // the loop.
  Settler(limiter::Checker& checker, TickWheel& wheel, HeldRequests& deferred,
          SettleCounters& counters);
  ~Settler();
  Settler(const Settler&) = delete;

  // Corrects the charges of one request when it ends. The settler must outlive the listener.
  std::unique_ptr<EndListener> Follow(std::vector<limiter::SizeCharge> charges);
  // The wheel of this loop, for other timers until the end of a request.
  TickWheel& wheel() const { return wheel_; }
  // Gives up the settlements that wait. Nothing is settled afterwards.
  void Close();

 private:
  class Followed;
  class Settlement;

  limiter::Checker& checker_;
  TickWheel& wheel_;
  HeldRequests& deferred_;
  SettleCounters& counters_;
  std::list<Settlement> settlements_;
  size_t waiting_ = 0;  // settlements that wait after the end of their requests
  bool closed_ = false;
};

}  // namespace headgate::proxy
