// The leases that this node holds of one bucket, those that end first in front.
//
//   granted ── Spend ──> spent ──────┐
//      ├────── Close (idle, …) ──────┴──> closed: reported as returned with the next ask
//      │                                     └── until one such report has arrived ──> gone
//      └────── its deadline passes ──────────────────────────────────────────────────> gone
//
// A closed lease is never spent from again, whatever becomes of the message that says so.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "headgate/base/clock.h"
#include "headgate/store/shared_store.h"

namespace headgate::limiter {

struct HeldLease {
  uint64_t number = 0;
  base::BootTime deadline{0};  // nothing is spent from then on
  uint32_t granted = 0;
  uint32_t spent = 0;
  uint32_t reported = 0;  // the most that was ever said to be spent
  bool closed = false;
  bool told = false;  // that it is closed, by the ask that is under way

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

  // The requests that may be spent, as of the last SpendFromFirst that succeeded, or DropExpired.
  // All together below 2^32.
  uint32_t left() const { return left_; }

  // Takes `cost` from the lease that ends first, if it is alive and has enough.
  bool SpendFromFirst(uint64_t cost, base::BootTime now) {
    if (size_ == 0) return false;
    HeldLease& first = leases_[0];
    if (now >= first.deadline || cost > first.left() || first.closed) [[unlikely]]
      return false;
    first.spent += static_cast<uint32_t>(cost);
    left_ -= static_cast<uint32_t>(cost);
    return true;
  }
  // The same from all, behind DropExpired: all of it or nothing.
  bool Spend(uint64_t cost);

  // Undoes up to `cost` of the spending that the store has not been told of; others may have taken
  // the room of reported requests. The store gets back the part that goes into a closed lease when
  // that lease is returned. Call DropExpired first. Returns the cost undone.
  uint64_t GiveBack(uint64_t cost);

  // Drops those whose deadline has passed; returns how much of them was never spent.
  uint64_t DropExpired(base::BootTime now);

  // Adds a lease that can be spent from now on, or must be returned; at most as much of it as keeps
  // all together below 2^32. If full, drops a closed lease, which then counts as spent at the
  // store; `lost` is its unspent rest. Returns false if all are in use.
  bool Add(HeldLease lease, uint64_t& lost);
  // Those that end before `until`.
  void Close(base::BootTime until);
  void CloseFirst();

  // There is something to give back that has not been told; or only that a lease is used up.
  bool HasUnspentReturns() const;
  bool HasReturns() const;
  // The reports about live leases that the store needs; marks them as reported. Returns the number
  // of reports.
  uint32_t Report(std::array<store::LeaseReport, kMax>& reports);
  // The ask that told it has arrived, or not. Returns how much has gone back with it.
  uint64_t OnTold(bool arrived);
  // All of them; returns how much was never spent.
  uint64_t Clear();

 private:
  void CloseSpent();
  void Erase(uint32_t i);

  // The fields of a decision come first; a lease that is being spent from has its place in front.
  uint32_t size_ = 0;
  uint32_t left_ = 0;
  std::array<HeldLease, kMax> leases_;
};

}  // namespace headgate::limiter
