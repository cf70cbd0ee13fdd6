// Describes a book's answers in words, for tests and traces.
#include "headgate/limiter/lease/lease_book.h"

namespace headgate::limiter::lease {

std::ostream& operator<<(std::ostream& out, const LeaseAction& action) {
  out << "ask #" << action.ask.id.number << " of " << action.name;
  if (action.ask.cost > 0) out << ", taking " << action.ask.cost;
  if (action.ask.want > 0)
    out << ", for " << action.ask.want << " or " << action.ask.brief << " of a part of "
        << action.ask.parts;
  for (const store::LeaseReport& report : action.ask.reports) {
    out << "; #" << report.number << " spent " << report.spent
        << (report.returned ? ", returned" : "");
  }
  return out;
}

std::ostream& operator<<(std::ostream& out, const LeaseVerdict& verdict) {
  switch (verdict.kind) {
    case LeaseVerdict::Kind::kAskStore:
      out << "ask the store";
      break;
    case LeaseVerdict::Kind::kAwait:
      out << "await the answer";
      break;
    case LeaseVerdict::Kind::kAllowed:
      out << "allowed, " << verdict.decision.remaining << " left";
      break;
    case LeaseVerdict::Kind::kDenied:
      out << "denied for " << verdict.decision.retry_after.count() / 1'000'000 << "ms";
      break;
  }
  if (verdict.action != nullptr) out << "; " << *verdict.action;
  return out;
}

}  // namespace headgate::limiter::lease
