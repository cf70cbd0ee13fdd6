// The leases that this node holds of one bucket, ordered by their deadlines.
//
//   granted ── Spend ──> spent ──────┐
//      ├────── Close (idle, …) ──────┴──> closed: reported as returned with the next ask
//      │                                     └── until one such report has arrived ──> gone
//      └────── its deadline passes ────┘
//
// A closed lease is never spent from again, whether or not the message about it arrives.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter::lease {

struct HeldLease {
  uint64_t number = 0;
  base::BootTime deadline{0};  // it cannot be spent from this time on
  uint32_t granted = 0;
  uint32_t spent = 0;
  uint32_t reported = 0;  // the highest number ever reported as spent
  bool closed = false;
  bool told = false;  // the ask in flight reports that it is closed

  uint32_t unspent() const { return granted - spent; }
  uint32_t left() const { return closed ? 0 : unspent(); }
};

class HeldLeases {
 public:
  static constexpr uint32_t kMax = 5;

  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  const HeldLease* begin() const { return leases_.data(); }
  const HeldLease* end() const { return leases_.data() + size_; }

  // The requests that may be spent, as of the last SpendFromFirst that succeeded, or Close.
  // Their sum is below 2^32.
  uint32_t left() const { return left_; }

  // Takes `cost` from the lease that ends first, if it has not expired and has enough.
  bool SpendFromFirst(uint64_t cost, base::BootTime now) {
    if (size_ == 0) return false;
    HeldLease& first = leases_[0];
    if (now >= first.deadline || cost > first.left() || first.closed) [[unlikely]]
      return false;
    first.spent += static_cast<uint32_t>(cost);
    left_ -= static_cast<uint32_t>(cost);
    return true;
  }
  // The same from all leases, after Close(now): the whole cost or nothing.
  bool Spend(uint64_t cost);

  // Undoes up to `cost` of the spending that the store has not been told of; others may have taken
  // the room of reported requests. Not from leases with numbers above `newest`: they were granted
  // later, perhaps in another window. Not into leases that have ended by `until` either: a window
  // may have ended with them. The store gets back the part that goes into a closed lease when that
  // lease is returned. Call Close(now) first. Returns the cost undone.
  uint64_t GiveBack(uint64_t cost, uint64_t newest = ~uint64_t{0},
                    base::BootTime until = base::BootTime{0});
  // The highest number of a lease that is held; 0: none is.
  uint64_t newest() const;

  // Drops leases that ended before `before`: no report of them brings anything back. Returns the
  // number of their unspent requests.
  uint64_t DropEnded(base::BootTime before);

  // Adds a lease that can be spent from at once, or must be returned, but only as much of it as
  // keeps the sum below 2^32. If all places are in use, drops a closed lease, which then counts as
  // spent at the store; `lost` is its unspent rest. Returns false if no lease is closed.
  bool Add(HeldLease lease, uint64_t& lost);
  // Closes leases that end before `until`, or are used up.
  void Close(base::BootTime until);
  void CloseFirst();

  // Whether there are unreported requests to give back, or only used-up leases to report.
  bool HasUnspentReturns() const;
  bool HasReturns() const;
  // The reports about live leases that the store needs; marks them as reported. Returns the number
  // of reports.
  uint32_t Report(std::array<store::LeaseReport, kMax>& reports);
  // The unspent requests of the leases that the last report returned, and that had not ended.
  uint64_t Returned(base::BootTime now) const;
  // The ask with the reports has arrived or failed. Returns the number of requests that went back.
  uint64_t OnTold(bool arrived);
  // Drops all leases; returns the number of their unspent requests.
  uint64_t Clear();

 private:
  void CloseSpent();
  void Erase(uint32_t i);

  // A decision needs the first fields; the lease that is being spent from is stored in front.
  uint32_t size_ = 0;
  uint32_t left_ = 0;
  std::array<HeldLease, kMax> leases_;
};

}  // namespace headgate::limiter::lease
