// The words of a mapping file that name an attribute: `header: X-API-Key`, `client_address: true`.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/mapping/mapping.h"
#include "headgate/mapping/network_lists.h"
#include "headgate/mapping/yaml_fields.h"

namespace headgate::mapping {

// How to mend a file that uses parts of the original request without saying how to find them.
inline constexpr std::string_view kOriginalRequestHint =
    "say how the proxy describes the client's request: original_request: x-original (nginx), "
    "x-forwarded (Caddy, Traefik) or request-line (Envoy)";

// `words`, and all words of attributes.
std::vector<std::string_view> WordsWithAttributes(std::initializer_list<std::string_view> words);

// The parts of the file that attributes may refer to.
struct AttributeContext {
  OriginalRequest original_request = OriginalRequest::kNone;
  std::span<const TokenIssuer> issuers{};
  NetworkLists* networks = nullptr;
};

// The attribute that the fields name. Reports a problem unless it is exactly one.
Attribute ReadAttribute(YamlFields& fields, const AttributeContext& context);

}  // namespace headgate::mapping
