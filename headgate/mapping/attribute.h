// An attribute of a request, such as a header or the client's address, and how to read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/ip_address.h"
#include "headgate/mapping/client_address.h"
#include "headgate/mapping/described_request.h"
#include "headgate/mapping/network_table.h"
#include "headgate/mapping/tokens.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {

enum class AttributeKind : uint8_t {
  kValue,          // always the same
  kHeader,         // the only header of this name
  kBearer,         // the token in Authorization
  kCookie,         // a cookie
  kQuery,          // a parameter of the query
  kMethod,         // GET, …; GET for HEAD, which runs the handler of GET
  kHost,           // lower case, without port
  kPath,           // normalized
  kPathPrefix,     // the first segments of the path
  kPathSegment,    // one segment of the path
  kClientAddress,  // the network of the client's address
  kNetwork,        // the name of a network with the client's address
  kClaim,          // a claim of a verified token
  kGeohash,        // the cell of a position given by two headers
};

constexpr bool IsOfPath(AttributeKind kind) {
  return kind == AttributeKind::kPath || kind == AttributeKind::kPathPrefix ||
         kind == AttributeKind::kPathSegment;
}

struct Attribute {
  AttributeKind kind = AttributeKind::kValue;
  // The name of the header, cookie or parameter; of the latitude's header; the constant value; or
  // the value for clients in no network.
  std::string name{};
  std::string second_name{};         // the longitude's header
  std::vector<std::string> claim{};  // names from the top down
  uint32_t issuer = 0;               // whose token holds the claim
  uint32_t table = 0;                // of AttributeOptions::networks
  // The number of path segments, the index of one segment (from 1), or the number of characters of
  // a geohash.
  uint32_t count = 0;
};

// How to read attributes; the same for all requests.
struct AttributeOptions {
  ClientAddressOptions client_address{};
  // The network that stands for an IPv6 address in keys: providers give each customer a network,
  // and a client may use all of its addresses.
  uint8_t ipv6_prefix_bits = 64;
  // Whether the proxy may have joined two fields of a header with a comma, as Envoy does. Envoy
  // adds no space, so a comma with a space behind it comes from the client.
  bool may_join_fields = false;
  wire::PathParameters path_parameters = wire::PathParameters::kRefuse;
  std::vector<NetworkTable> networks{};
  // Whether only trusted proxies ask. Otherwise this process is the proxy, and a request is from a
  // trusted one if the peer is.
  bool asks_trusted = true;

  // Whether a trusted proxy has set or checked the headers that clients may not choose.
  bool Believes(const DescribedRequest& request) const {
    return asks_trusted ||
           (request.is_forwarded &&
            (!request.client || client_address.trusted_proxies.Contains(*request.client)));
  }
};

enum class AttributeProblem : uint8_t {
  kNone,
  kMissing,   // the request does not have it
  kExpired,   // the request has an expired token
  kNotValid,  // the request has a token that is not valid
  kInvalid,   // it is malformed, or it is there twice
};

// The attributes of one request. Reads each part of the request when it is first needed. Reused for
// all requests of a loop, together with its memory.
class Attributes {
 public:
  // All arguments must outlive the reading of the request's attributes. `now_s`: Unix time.
  void Begin(const DescribedRequest& request, const AttributeOptions& options, TokenReader& tokens,
             int64_t now_s);

  // Sets `value`, which is valid until the next Begin. Appends to `text` if the value is not a part
  // of the request. For a path that is kInvalid because of its dot segments, `value` is the value
  // for a server that resolves them. With any other problem, `value` is empty.
  AttributeProblem Read(const Attribute& attribute, std::string& text, std::string_view& value);

  // The limit that the request brings. kMissing if it brings none, or brings it in a header that
  // does not come from a trusted proxy. An invalid token does not count as a missing one.
  AttributeProblem GivenLimit(const Attribute& attribute, std::string& text,
                              std::string_view& value);

  // Whether the client's complete address is in one of the networks.
  AttributeProblem IsClientIn(const base::IpNetworkSet& networks, bool& is_in);
  // Whether the client's address is known.
  AttributeProblem FindClient();
  // The normalized path; kInvalid if it, or the query behind it, is ambiguous.
  AttributeProblem Path(std::string_view& path);
  // The path for a server that does not resolve dot segments. Empty if both paths are the same, or
  // if the application gets the resolved one. Valid after Path().
  std::string_view unresolved_path() const { return unresolved_path_; }
  // Whether `fits` holds for a path that a server would use if it ran a script named in the path.
  // False for a path that is not valid.
  bool FitsBehindScript(absl::FunctionRef<bool(std::string_view)> fits) const;
  // The same for the part of such a path that the attribute names.
  bool IsInBehindScript(const Attribute& attribute,
                        absl::FunctionRef<bool(std::string_view)> is_in) const;
  // kInvalid if it has lower-case letters: methods are case-sensitive (RFC 9110, 9.1), but many
  // backends read `post` as POST.
  AttributeProblem Method(std::string_view& method);
  // The normalized host; kInvalid if it is ambiguous.
  AttributeProblem Host(std::string_view& host);
  const DescribedRequest& request() const { return *request_; }
  // Why the last part was kInvalid; for people. Has static lifetime.
  wire::Why why() const { return why_; }
  // Whether anything of this request depends on its path.
  bool has_read_path() const { return path_state_.has_value(); }

 private:
  AttributeProblem Invalid(wire::Why why) {
    why_ = why;
    return AttributeProblem::kInvalid;
  }
  // An empty value says nothing about the client.
  AttributeProblem Checked(std::string_view value);
  AttributeProblem Checked(wire::Lookup lookup, std::string_view value);
  AttributeProblem Query(const Attribute& attribute, std::string& text);
  AttributeProblem FindHeader(std::string_view name, std::string_view& value);
  AttributeProblem Header(const std::string& name, std::string& text, std::string_view& value);
  AttributeProblem Bearer(std::string_view& value);
  AttributeProblem PathPart(const Attribute& attribute, std::string_view& value);
  AttributeProblem ClientNetwork(std::string& text);
  AttributeProblem NamedNetwork(const Attribute& attribute, std::string_view& value);
  AttributeProblem Geohash(const Attribute& attribute, std::string& text);

  const DescribedRequest* request_ = nullptr;
  const AttributeOptions* options_ = nullptr;
  TokenReader* tokens_ = nullptr;
  int64_t now_s_ = 0;
  std::optional<AttributeProblem> path_state_;
  std::string path_;
  std::string unresolved_path_;
  bool has_script_ = false;  // the path, if it is valid
  std::optional<AttributeProblem> host_state_;
  std::string host_;
  std::optional<ClientAddress> client_;
  wire::Why why_;
  wire::Why why_path_;  // of a path that is invalid
};

}  // namespace headgate::mapping
