// The mappings of programs that are started without a mapping file.
#include <memory>
#include <string>

#include "headgate/mapping/mapping_file.h"

namespace headgate::mapping {

std::shared_ptr<const MappingSet> MappingOfHeader(std::string_view header) {
  auto set = std::make_shared<MappingSet>();
  set->any_peer = true;
  set->attributes.may_join_fields = true;  // the proxy may be any
  Mapping mapping{.name = "auth_header", .domain = std::string(rule::kDefaultDomain)};
  mapping.require_rule = true;
  mapping.descriptors.push_back(
      {.entries = {{.key = "api_key",
                    .attribute = {.kind = AttributeKind::kHeader, .name = std::string(header)}}}});
  set->mappings.push_back(std::move(mapping));
  SetHeaders(*set);
  return set;
}

std::shared_ptr<const MappingSet> MappingOfClient(std::string_view header) {
  auto set = std::make_shared<MappingSet>();
  set->original_request = OriginalRequest::kLine;
  const bool by_address = header.empty();
  Mapping mapping{.name = "client", .domain = std::string(rule::kDefaultDomain)};
  mapping.descriptors.push_back(
      {.entries = {{.key = "client",
                    .attribute = {.kind = by_address ? AttributeKind::kClientAddress
                                                     : AttributeKind::kHeader,
                                  .name = std::string(header)}}},
       .optional = true});
  set->mappings.push_back(std::move(mapping));
  SetHeaders(*set);
  return set;
}

}  // namespace headgate::mapping
