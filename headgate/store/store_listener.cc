#include "headgate/store/store_listener.h"

namespace headgate::store {

std::string_view Name(HistoryChange change) {
  switch (change) {
    case HistoryChange::kNone:
      return "none";
    case HistoryChange::kRestarted:
      return "restarted";
    case HistoryChange::kPromoted:
      return "promoted";
    case HistoryChange::kReplaced:
      return "replaced";
  }
  return "";
}

}  // namespace headgate::store
