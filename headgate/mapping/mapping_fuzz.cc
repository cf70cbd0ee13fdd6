// The first byte chooses: a mapping file, or a request that is mapped by a set with every
// attribute. A request whose forwarding header was completed by a trusted proxy has the client's
// own address.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/mapping/mapping_file.h"

namespace {

using namespace headgate::mapping;

absl::StatusOr<std::string> NoFile(const std::string& name) { return absl::NotFoundError(name); }

std::shared_ptr<const MappingSet> EveryAttribute() {
  return LoadMappings("auth.yaml", R"(
trusted_proxies: [10.0.0.0/8]
original_request: x-forwarded
jwt: [{unverified: true}]
networks: [{name: n, networks: [203.0.113.0/24]}]
mappings:
- path: [/a/*, /b/*/c]
  host: "*.example.com"
  descriptors:
  - entries: [{key: path, path: true}, {key: prefix, path_prefix: 2}, {key: host, host: true}]
- refuse: [{client_address: true, networks: [192.0.2.0/24]}, {query: q, values: [x]}]
  descriptors:
  - entries: [{key: client, client_address: true}, {key: network, network: true}]
  - {entries: [{key: auth, header: Authorization}, {key: bearer, bearer: true}], optional: true}
  - {entries: [{key: header, header: X-Key}, {key: segment, path_segment: 1}], optional: true}
  - {entries: [{key: cookie, cookie: sid}, {key: query, query: q}], optional: true}
  - {entries: [{key: claim, claim: [a, b]}, {key: method, method: true}], optional: true}
  - {entries: [{key: g, geohash: 7, latitude_header: Lat, longitude_header: Lon}], optional: true}
)",
                      NoFile)
      .set;
}

// Lines: method, host, target, then "name: value" for each header.
void MapRequest(std::string_view text) {
  static const std::shared_ptr<const MappingSet> set = EveryAttribute();
  static Mapper mapper = [] {
    Mapper made;
    made.Use(*set);
    return made;
  }();
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < 64) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  lines.resize(std::max<size_t>(lines.size(), 3));
  std::vector<HeaderField> fields;
  for (size_t i = 3; i < lines.size(); ++i) {
    const size_t colon = std::min(lines[i].find(": "), lines[i].size());
    const std::string_view name = lines[i].substr(0, colon);
    const std::string_view value = lines[i].substr(std::min(colon + 2, lines[i].size()));
    fields.emplace_back(name, value);
  }
  // A trusted proxy appends a line of its own.
  fields.emplace_back("X-Forwarded-For", "203.0.113.7, 10.1.1.1");
  const DescribedRequest request{
      .method = lines[0], .host = lines[1], .target = lines[2], .fields = fields};
  const MappedRequest mapped = mapper.Map(request, 1'800'000'000);
  HEADGATE_CHECK(mapped.as != MappedAs::kInvalid || mapped.lacks_valid_token() ||
                 !mapped.why.empty());
  for (const headgate::rule::Descriptor& descriptor : mapped.descriptors) {
    HEADGATE_CHECK(!descriptor.entries.empty());
    for (const headgate::rule::Entry& entry : descriptor.entries) {
      HEADGATE_CHECK(!entry.value.empty());
      for (const char c : entry.value)
        HEADGATE_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
      if (entry.key == "client") HEADGATE_CHECK(entry.value == "203.0.113.7");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(data + 1)),
                              size - 1);
  if (data[0] == 'f') {
    const LoadedMappings loaded = LoadMappings("auth.yaml", text, NoFile);
    HEADGATE_CHECK((loaded.set == nullptr) == !loaded.problems.empty());
  } else {
    MapRequest(text);
  }
  return 0;
}
