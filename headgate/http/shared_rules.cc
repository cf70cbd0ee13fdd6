#include "headgate/http/shared_rules.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"

namespace headgate::http {
namespace {

using base::EqualsIgnoreCase;

constexpr std::array<std::string_view, 5> kCarriers = {"h2c", "h2", "h3", "http", "tls"};

}  // namespace

bool CarriesHttp(std::string_view protocol) {
  const std::string_view name = protocol.substr(0, protocol.find('/'));
  return std::any_of(kCarriers.begin(), kCarriers.end(),
                     [name](std::string_view carrier) { return EqualsIgnoreCase(name, carrier); });
}

}  // namespace headgate::http
