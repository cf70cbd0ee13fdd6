#include "tests/simulation/evidence.h"

namespace headgate::simulation {

using limiter::Mode;
using Call = Evidence::Call;

namespace {

// Checks a decision from leases: its cost was spent from leases that were held or just granted. If
// a group was denied, everything went back. The store decided the other cases.
std::string WrongFromLease(const Decided& decided, const Evidence& evidence) {
  if (decided.undone) {
    if (evidence.spent != static_cast<int64_t>(evidence.refunded))
      return "did not give back what it had spent";
    return "";
  }
  // A counted member may later have been asked whether it would allow another request, and have got
  // its cost back if no limit denied.
  if (decided.counted) {
    const int64_t kept = evidence.spent - static_cast<int64_t>(evidence.refunded);
    return kept == 0 || kept == static_cast<int64_t>(decided.cost)
               ? ""
               : "did not spend its cost from leases";
  }
  if (!decided.takes) {
    return evidence.spent == -static_cast<int64_t>(decided.cost)
               ? ""
               : "did not give its cost back to leases";
  }
  const uint64_t cost = decided.settled.decision.allowed ? decided.cost : 0;
  if (evidence.spent != static_cast<int64_t>(cost)) return "did not spend its cost from leases";
  return "";
}

// A refund goes to the leases first, and the store gets the rest.
bool GaveBackPart(const Decided& decided, const Evidence& evidence) {
  return !decided.takes && evidence.spent < 0 &&
         -evidence.spent < static_cast<int64_t>(decided.cost);
}

// The answer of a limit of 0 requests is known without the store.
bool CanNeverPass(const Decided& decided) {
  const algorithm::Decision& decision = decided.settled.decision;
  return decision.remaining == 0 && (decision.never_fits() || !decided.takes);
}

std::string WrongExact(const Decided& decided, const Evidence& evidence) {
  if (evidence == Evidence{.awaited = evidence.awaited} && CanNeverPass(decided)) return "";
  if (evidence.denied && evidence.decision != Call::kAnswered && evidence.spent == 0)
    return decided.settled.decision.allowed ? "is not what the store answered" : "";
  if (evidence.decision != Call::kAnswered) return "had no answer from the store";
  if (decided.counted) return "";
  // The store counts what this instance holds as taken.
  if (evidence.spent != 0 && !evidence.allowed && decided.takes)
    return WrongFromLease(decided, evidence);
  if (evidence.spent != 0 && !GaveBackPart(decided, evidence)) return "was spent from a lease too";
  if (decided.undone) {
    const bool took = evidence.took && evidence.allowed;
    return evidence.refunded == (took ? decided.cost : 0) ? ""
                                                          : "was not refunded what it had taken";
  }
  return decided.settled.decision.allowed == evidence.allowed ? ""
                                                              : "is not what the store answered";
}

std::string WrongDegraded(const Decided& decided, const Evidence& evidence) {
  const bool failed = evidence.decision == Call::kFailed ||
                      (evidence.decision == Call::kNone && evidence.awaited == Call::kFailed);
  if (!failed) return "but no call failed";
  const bool spent = evidence.spent != 0 && !GaveBackPart(decided, evidence);
  if (spent || (evidence.refunded != 0 && !decided.counted))
    return "took something from the shared bucket";
  const bool allowed = decided.settled.decision.allowed;
  if (decided.settled.mode == Mode::kClosed) return allowed ? "was let through" : "";
  if (decided.settled.mode == Mode::kOpen) {
    if (decided.on_failure != rule::OnStoreFailure::kAllow)
      return "does not follow the rule's policy";
    return allowed || decided.undone || decided.counted ? "" : "was refused";
  }
  if (decided.on_failure != rule::OnStoreFailure::kLocal)
    return "does not follow the rule's policy";
  if (evidence.here == Call::kNone) return "was not decided by the local store";
  if (allowed != evidence.allowed_here && !decided.undone && !decided.counted)
    return "differs from the local store's decision";
  return "";
}

}  // namespace

std::string Dishonesty(const Decided& decided, const Evidence& evidence) {
  switch (decided.settled.mode) {
    case Mode::kLeased:
      if (evidence.decision != Call::kNone) return "was decided by the store";
      return WrongFromLease(decided, evidence);
    case Mode::kExact:
      return WrongExact(decided, evidence);
    case Mode::kLocal:
    case Mode::kOpen:
    case Mode::kClosed:
      return WrongDegraded(decided, evidence);
    case Mode::kMemory:
      break;
  }
  return "has a mode that no rule of the simulation has";
}

}  // namespace headgate::simulation
