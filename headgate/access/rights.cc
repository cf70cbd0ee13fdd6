#include "headgate/access/rights.h"

#include <array>
#include <utility>

namespace headgate::access {
namespace {

constexpr std::array<std::pair<Right, std::string_view>, 4> kNames = {{{Right::kCheck, "check"},
                                                                       {Right::kRefund, "refund"},
                                                                       {Right::kRead, "read"},
                                                                       {Right::kAdmin, "admin"}}};

}  // namespace

std::string_view Name(Right right) { return kNames[static_cast<size_t>(right)].second; }

std::optional<Right> RightByName(std::string_view name) {
  for (const auto& [right, its_name] : kNames) {
    if (its_name == name) return right;
  }
  return std::nullopt;
}

}  // namespace headgate::access
