// A node's own account of the leases of one key, kept apart from the book and only from the
// messages sent and received: no request is spent that was not granted, or after the deadline, or
// twice, and every report has the number of spent requests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/limiter/lease/held_leases.h"
#include "headgate/store/shared_store.h"
#include "tests/simulation/coverage.h"
#include "tests/simulation/plan.h"

namespace headgate::simulation {

class Ledger {
 public:
  struct Account {
    base::BootTime asked_at;
    base::BootTime deadline{0};
    uint64_t granted = 0;
    uint64_t spent = 0;
    uint64_t reported = 0;
    bool over = false;  // returned, failed or refused
  };
  using Wrong = std::function<void(const std::string& what)>;

  Ledger(const Plan& plan, Coverage& coverage, Wrong wrong)
      : plan_(plan), coverage_(coverage), wrong_(std::move(wrong)) {}

  // How long a node may spend from a lease of this TTL.
  static base::Duration Life(base::Duration ttl);

  // The node's asks and reports, before a mutant changes them.
  void OnAsk(const store::LeaseAsk& ask, base::BootTime now);
  void OnReports(std::span<const store::LeaseReport> reports, base::BootTime now);
  // Returns the deadline of the lease on the node.
  base::BootTime OnGrant(uint64_t number, const store::LeaseGrant& grant, base::BootTime asked_at);
  void OnFailure(uint64_t number) { accounts_[number].over = true; }
  // The requests that the book has spent since the last call, less those given back.
  int64_t Compare(const limiter::lease::HeldLeases* held, base::BootTime now);

  const std::map<uint64_t, Account>& accounts() const { return accounts_; }

 private:
  const Plan& plan_;
  Coverage& coverage_;
  Wrong wrong_;
  std::map<uint64_t, Account> accounts_;  // by the number of the lease
};

}  // namespace headgate::simulation
