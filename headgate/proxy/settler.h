// Settles costs by size (rule/size_cost.h) of the requests of one loop: when the size is known, and
// of long streams also in between.
//
//   less than charged ──▶ the rest goes back, as far as it has not come back by itself
//   more than charged ──▶ the rest is taken; what the bucket lacks is owed, and taken as soon as it
//                         comes back. Until then the key is denied (limiter/size_debts.h)
//
// With buckets of this process, everything is done within the call; otherwise it waits for the
// store, and goes on without the request.
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
  base::Counter taken{};      // beyond what was reserved
  base::Counter returned{};   // of what was reserved in excess
  base::Counter lapsed{};     // in excess, but it had come back to the bucket by itself
  base::Counter forgotten{};  // could not be taken: the limit is gone, or too many keys owe
};

class Settler {
 public:
  // Settlements that wait for the store, and keys that this loop pays for.
  static constexpr size_t kTasksMax = size_t{1} << 16;
  // How long a payment waits when the store cannot be asked.
  static constexpr base::Duration kRetryAfter = std::chrono::seconds(1);
  // How often a payment that waits for its bucket looks whether it still has to.
  static constexpr base::Duration kLookAfter = std::chrono::seconds(1);

  // Everything must outlive this object. `deferred` is for work that goes on in another turn.
  Settler(limiter::Checker& checker, TickWheel& wheel, HeldRequests& deferred,
          SettleCounters& counters);
  ~Settler();
  Settler(const Settler&) = delete;

  // Corrects the charges of one request when it ends. The settler must outlive the listener.
  std::unique_ptr<EndListener> Follow(std::vector<limiter::SizeCharge> charges);
  // For other work until the end of a request.
  TickWheel& wheel() const { return wheel_; }
  // Gives up what waits, and settles nothing any more.
  void Close();

 private:
  class Followed;
  class Task;
  class Return;
  class Payment;

  void Correct(limiter::SizeCharge& charge, uint64_t bytes, base::Instant now);
  void Take(const limiter::SizedLimit& place, algorithm::Cost cost, base::Instant now);
  void GiveBack(const limiter::SizedLimit& place, algorithm::Cost cost, base::Instant now);
  void Begin(std::unique_ptr<Task> task, base::Instant now);

  limiter::Checker& checker_;
  TickWheel& wheel_;
  HeldRequests& deferred_;
  SettleCounters& counters_;
  std::list<std::unique_ptr<Task>> tasks_;
  bool closed_ = false;
};

}  // namespace headgate::proxy
