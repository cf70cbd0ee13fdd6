#include "headgate/limiter/lease/held_leases.h"

#include <limits>

#include "headgate/base/check.h"

namespace headgate::limiter::lease {

using base::BootTime;

bool HeldLeases::Spend(uint64_t cost) {
  if (size_ == 0 || leases_[0].closed || cost > left_) return false;
  left_ -= static_cast<uint32_t>(cost);
  for (uint32_t i = 0; i < size_; ++i) {
    HeldLease& lease = leases_[i];
    const auto part = static_cast<uint32_t>(std::min<uint64_t>(cost, lease.left()));
    lease.spent += part;
    cost -= part;
  }
  HEADGATE_DCHECK(cost == 0);
  CloseSpent();
  return true;
}

// Used-up leases are over; leases that can be spent from come first.
void HeldLeases::CloseSpent() {
  for (uint32_t i = 0; i < size_; ++i) {
    if (leases_[i].spent == leases_[i].granted) leases_[i].closed = true;
  }
  std::stable_partition(leases_.begin(), leases_.begin() + size_,
                        [](const HeldLease& lease) { return !lease.closed; });
}

uint64_t HeldLeases::newest() const {
  uint64_t newest = 0;
  for (const HeldLease& lease : *this) newest = std::max(newest, lease.number);
  return newest;
}

uint64_t HeldLeases::GiveBack(uint64_t cost, uint64_t newest, BootTime until) {
  uint64_t given = 0;
  // Refunds go to open leases first, which are stored before the closed ones.
  for (uint32_t i = 0; i < size_ && given < cost; ++i) {
    HeldLease& lease = leases_[i];
    if (lease.number > newest || lease.deadline <= until || lease.spent <= lease.reported) continue;
    const auto part =
        static_cast<uint32_t>(std::min<uint64_t>(cost - given, lease.spent - lease.reported));
    lease.spent -= part;
    given += part;
    if (!lease.closed) left_ += part;
  }
  return given;
}

uint64_t HeldLeases::DropEnded(BootTime before) {
  uint64_t lost = 0;
  for (uint32_t i = size_; i-- > 0;) {
    if (leases_[i].deadline > before) continue;
    lost += leases_[i].unspent();
    left_ -= leases_[i].left();
    Erase(i);
  }
  return lost;
}

bool HeldLeases::Add(HeldLease lease, uint64_t& lost) {
  lost = 0;
  if (size_ == kMax) {
    const auto closed =
        std::find_if(begin(), end(), [](const HeldLease& held) { return held.closed; });
    if (closed == end()) return false;
    lost = closed->unspent();
    Erase(static_cast<uint32_t>(closed - begin()));
  }
  lease.granted = std::min(lease.granted, std::numeric_limits<uint32_t>::max() - left_);
  // Open leases are stored first, ordered by their deadlines.
  uint32_t at = size_;
  while (at > 0 && !lease.closed &&
         (leases_[at - 1].closed || leases_[at - 1].deadline > lease.deadline)) {
    leases_[at] = leases_[at - 1];
    --at;
  }
  leases_[at] = lease;
  ++size_;
  left_ += lease.left();
  return true;
}

void HeldLeases::Close(BootTime until) {
  for (uint32_t i = 0; i < size_; ++i) {
    HeldLease& lease = leases_[i];
    if (lease.closed || (lease.deadline >= until && lease.unspent() > 0)) continue;
    left_ -= lease.left();
    lease.closed = true;
  }
  std::stable_partition(leases_.begin(), leases_.begin() + size_,
                        [](const HeldLease& lease) { return !lease.closed; });
}

void HeldLeases::CloseFirst() {
  if (size_ > 0 && !leases_[0].closed) {
    left_ -= leases_[0].left();
    leases_[0].closed = true;
    std::rotate(leases_.begin(), leases_.begin() + 1, leases_.begin() + size_);
  }
}

bool HeldLeases::HasUnspentReturns() const {
  // A lease that may have been granted turned out to have no requests.
  return std::any_of(begin(), end(), [](const HeldLease& lease) {
    return lease.closed && !lease.told && (lease.granted == 0 || lease.spent < lease.granted);
  });
}

bool HeldLeases::HasReturns() const {
  return std::any_of(begin(), end(),
                     [](const HeldLease& lease) { return lease.closed && !lease.told; });
}

uint32_t HeldLeases::Report(std::array<store::LeaseReport, kMax>& reports) {
  CloseSpent();
  uint32_t count = 0;
  for (uint32_t i = 0; i < size_; ++i) {
    HeldLease& lease = leases_[i];
    if (!lease.closed && lease.spent == 0) continue;
    reports[count++] = {.number = lease.number, .spent = lease.spent, .returned = lease.closed};
    lease.reported = lease.spent;
    lease.told = lease.closed;
  }
  return count;
}

uint64_t HeldLeases::Returned(BootTime now) const {
  uint64_t returned = 0;
  for (const HeldLease& lease : *this) {
    if (lease.told && lease.deadline > now) returned += lease.unspent();
  }
  return returned;
}

uint64_t HeldLeases::OnTold(bool arrived) {
  uint64_t returned = 0;
  for (uint32_t i = size_; i-- > 0;) {
    if (!leases_[i].told) continue;
    if (arrived) {
      returned += leases_[i].unspent();
      Erase(i);
    } else {
      leases_[i].told = false;
    }
  }
  return returned;
}

uint64_t HeldLeases::Clear() {
  uint64_t lost = 0;
  for (const HeldLease& lease : *this) lost += lease.unspent();
  size_ = 0;
  left_ = 0;
  return lost;
}

void HeldLeases::Erase(uint32_t i) {
  std::move(leases_.begin() + i + 1, leases_.begin() + size_, leases_.begin() + i);
  --size_;
}

}  // namespace headgate::limiter::lease
