#include "tests/simulation/ledger.h"

#include <algorithm>

#include <fmt/format.h>

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using limiter::lease::HeldLease;
using store::LeaseReport;

namespace {

// The same values as in the book's options.
constexpr int64_t kMarginPercent = 5;

}  // namespace

Duration Ledger::Life(Duration ttl) {
  return ttl - Duration((ttl.count() * kMarginPercent + 99) / 100);
}

void Ledger::OnAsk(const store::LeaseAsk& ask, BootTime now) {
  accounts_[ask.id.number] = {.asked_at = now};
  OnReports(ask.reports, now);
}

void Ledger::OnReports(std::span<const LeaseReport> reports, BootTime now) {
  for (const LeaseReport& report : reports) {
    Account& account = accounts_[report.number];
    if (report.spent != account.spent) {
      wrong_(fmt::format("lease #{} was reported as spent {}, but {} were", report.number,
                         report.spent, account.spent));
    }
    if (report.returned && now >= account.deadline && account.spent < account.granted)
      coverage_.Mark("a lease was reported after its end");
    account.reported = std::max(account.reported, report.spent);
    if (report.returned) account.over = true;
  }
}

BootTime Ledger::OnGrant(uint64_t number, const store::LeaseGrant& grant, BootTime asked_at) {
  Account& account = accounts_[number];
  account.granted = grant.granted;
  account.deadline = asked_at + Life(grant.ttl);
  if (grant.granted == 0) account.over = true;
  return account.deadline;
}

int64_t Ledger::Compare(const limiter::lease::HeldLeases* held, BootTime now) {
  int64_t net = 0;
  if (held == nullptr) return net;
  for (const HeldLease& lease : *held) {
    Account& account = accounts_[lease.number];
    if (lease.spent == account.spent) continue;
    const bool back = lease.spent < account.spent;
    net += static_cast<int64_t>(lease.spent) - static_cast<int64_t>(account.spent);
    account.spent = lease.spent;
    if (account.over) {
      wrong_(fmt::format("lease #{} was {} after it had ended", lease.number,
                         back ? "refunded" : "spent"));
    }
    if (back) {
      if (account.spent >= account.reported) continue;
      wrong_(fmt::format("lease #{} was refunded requests that had already been reported",
                         lease.number));
    }
    if (now >= account.deadline)
      wrong_(fmt::format("lease #{} was spent after its deadline", lease.number));
    if (account.spent > account.granted)
      wrong_(fmt::format("lease #{} was overspent", lease.number));
    if (now == account.deadline - Duration(1))
      coverage_.Mark("the last instant of a lease was used");
  }
  return net;
}

}  // namespace headgate::simulation
