// Which descriptors a request has: what Envoy calls rate limit actions. The first mapping whose
// conditions fit decides.
//
//   request ──▶ refused? ──▶ preflight or exempt? passes ──▶ attributes ──▶ descriptors
//
// LoadMappings (mapping_file.h) makes one from text.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "headgate/base/ip_network_set.h"
#include "headgate/base/rate_limit_form.h"
#include "headgate/mapping/attribute.h"
#include "headgate/mapping/path_pattern.h"
#include "headgate/mapping/tokens.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/refusal.h"

namespace headgate::mapping {

// How a proxy describes the client's request to Headgate.
enum class OriginalRequest : uint8_t {
  kNone,        // not at all; only headers and addresses are known
  kXOriginal,   // X-Original-URI, X-Original-Method, X-Original-Host: the convention with nginx
  kXForwarded,  // X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host: Caddy and Traefik
  kLine,        // its own request line, behind the path prefix /auth, and Host: Envoy's ext_authz
};

// The status of the answer for each outcome that does not pass.
struct Statuses {
  int missing = 401;      // an attribute that a descriptor needs is missing
  int invalid = 400;      // an attribute is malformed or ambiguous
  int no_rule = 403;      // no rule applies, and one is required
  int refused = 403;      // a list of `refuse` names the request
  int denied = 429;       // over the limit
  int unavailable = 503;  // the store is unreachable, and the rule denies then
};

struct MappedEntry {
  std::string key;
  Attribute attribute;
};

struct MappedDescriptor {
  std::vector<MappedEntry> entries;
  std::optional<uint64_t> cost{};         // absent: 1, or the rule's cost by size
  std::optional<Attribute> limit_from{};  // a claim or a header with the limit, or the plan's name
  // Whether the descriptor is left out if an attribute is missing. Otherwise the request is
  // refused.
  bool optional = false;
};

// Names the requests whose attribute is in a list.
struct AttributeList {
  Attribute attribute;
  base::IpNetworkSet networks{};              // for kClientAddress
  absl::flat_hash_set<std::string> values{};  // for the others
};

struct Mapping {
  std::string name;  // for people: its `name`, or "mappings[0]"
  // Conditions; empty: any.
  std::vector<PathPattern> paths{};
  std::vector<std::string> methods{};
  std::vector<std::string> hosts{};  // lower case; "*.example.com" matches names below it

  std::string domain;
  std::vector<MappedDescriptor> descriptors{};
  std::vector<AttributeList> exempt{};
  std::vector<AttributeList> refuse{};
  bool require_rule = false;
  // The form of answers about limits whose rule does not state one; absent or null: the listener's.
  std::optional<base::RateLimitDialect> rate_limit_fields{};
  std::shared_ptr<const rule::Refusal> refusal{};
  Statuses statuses{};
};

// Immutable, and shared by all loops.
struct MappingSet {
  OriginalRequest original_request = OriginalRequest::kNone;
  AttributeOptions attributes{};
  // The peers whose requests are answered at all: the networks of
  // attributes.client_address.trusted_proxies, or with `any_peer` everybody.
  bool any_peer = false;
  bool unix_peers = false;  // clients of Unix sockets
  // The header with an id that is the same when the proxy asks again about one request; empty:
  // none.
  std::string idempotency_header{};
  // Whether preflights of CORS pass, and are not counted.
  bool passes_preflights = false;
  // The origins whose pages may read refusals (wire/origin.h).
  std::vector<std::string> cors_origins{};
  std::vector<TokenIssuer> issuers{};
  std::vector<Mapping> mappings{};
  // The headers that the mappings read. A proxy of this process removes the fields that
  // applications could take for them (wire/alike_names.h).
  std::vector<std::string> headers{};

  bool Trusts(const DescribedRequest& request) const {
    if (any_peer) return true;
    if (!request.may_be_trusted) return false;
    return request.peer ? attributes.client_address.trusted_proxies.Contains(*request.peer)
                        : unix_peers;
  }
};

enum class MappedAs : uint8_t {
  kDescriptors,  // ask the limiter
  kUnmatched,    // no mapping fits: it passes
  kExempt,       // it passes
  kPreflight,    // it passes
  kRefused,
  kMissing,  // an attribute is missing
  kInvalid,  // an attribute is malformed or ambiguous
};

struct MappedRequest {
  MappedAs as = MappedAs::kUnmatched;
  const Mapping* mapping = nullptr;
  std::span<const rule::Descriptor> descriptors{};  // may be empty
  // Whether the path was read, for a condition or for an attribute.
  bool has_read_path = false;
  // The entry, or the place, of the attribute that is missing or invalid; for people.
  std::string_view attribute{};
  // The attribute itself; null if it is a part of the original request.
  const Attribute* source = nullptr;
  // If it is kInvalid: how readers could differ; for people. May be empty.
  wire::Why why{};
  // Why a token of the request was refused, also if nothing else depends on it.
  jwt::Refusal token_refusal = jwt::Refusal::kNone;

  // Whether the claim of a token that was refused is missing or invalid.
  bool lacks_valid_token() const {
    return token_refusal != jwt::Refusal::kNone && source != nullptr &&
           source->kind == AttributeKind::kClaim;
  }
};

// Maps requests for one loop; keeps its memory.
class Mapper {
 public:
  // Uses this set from now on. It must outlive its use.
  void Use(const MappingSet& set);
  // The result is valid until the next call, and only as long as the request. `now_s`: Unix time.
  MappedRequest Map(const DescribedRequest& request, int64_t now_s);

 private:
  // Whether the mapping's conditions fit. `problem` is set if they cannot be judged.
  bool Fits(const Mapping& mapping, AttributeProblem& problem);
  bool FitsPath(const Mapping& mapping, AttributeProblem& problem);
  bool IsIn(const AttributeList& list, MappedAs as, AttributeProblem& problem);
  // Whether one of the lists names the request, which is then mapped as `as`. If that cannot be
  // judged, sets `problem` and the attribute that it is about.
  bool IsInAny(std::span<const AttributeList> lists, MappedAs as, AttributeProblem& problem,
               const Attribute*& attribute);
  // Whether the request is a preflight that passes. A preflight that names its client does not:
  // browsers do not add names, so a proxy in between has, and the request is counted under the
  // name.
  bool IsFreePreflight(const Mapping& mapping) const;
  bool NamesClient(const Attribute& attribute) const;
  MappedRequest MapByFirst();
  MappedRequest MapBy(const Mapping& mapping);
  std::string& NextText();

  const MappingSet* set_ = nullptr;
  Attributes attributes_;
  TokenReader tokens_;
  wire::Why why_;  // how readers could differ in which mapping fits
  std::deque<std::string>
      texts_;  // values that are not a part of the request; a deque keeps places
  size_t texts_used_ = 0;
  std::vector<rule::Entry> entries_;
  std::vector<size_t> entry_counts_;
  std::vector<rule::Descriptor> descriptors_;
};

// Call it after all mappings are added to the set.
void SetHeaders(MappingSet& set);

// Whether a condition on this method fits requests of the other: HEAD runs the handler of GET in
// most frameworks.
bool MethodFits(std::string_view condition, std::string_view method);

// The name of an attribute in messages: "header X-API-Key".
std::string Describe(const Attribute& attribute);
// The problem of a request that is kMissing or kInvalid: "header X-API-Key is missing", "header
// X-API-Key is invalid: the header comes twice".
std::string DescribeProblem(const MappedRequest& mapped);

}  // namespace headgate::mapping
