// An attribute of a request, such as a header or the client's address, and how to read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/ip_address.h"
#include "headgate/mapping/client_address.h"
#include "headgate/mapping/request_head.h"
#include "headgate/mapping/tokens.h"

namespace headgate::mapping {

enum class AttributeKind : uint8_t {
  kValue,          // always the same
  kHeader,         // the only header of this name
  kCookie,         // a cookie
  kQuery,          // a parameter of the query
  kMethod,         // GET, …
  kHost,           // lower case, without port
  kPath,           // normalized
  kPathPrefix,     // the first segments of the path
  kPathSegment,    // one segment of the path
  kClientAddress,  // the network of the client's address
  kClaim,          // a claim of a verified token
  kGeohash,        // the cell of a position given by two headers
};

struct Attribute {
  AttributeKind kind = AttributeKind::kValue;
  std::string name{};  // of the header, cookie or parameter; the latitude's header; the value
  std::string second_name{};         // the longitude's header
  std::vector<std::string> claim{};  // names from the top down
  uint32_t issuer = 0;               // whose token holds the claim
  // How many segments of the path, which segment (from 1), or how many characters of a geohash.
  uint32_t count = 0;
};

// How to read attributes; the same for all requests.
struct AttributeOptions {
  ClientAddressOptions client_address{};
  // The network that stands for an IPv6 address in keys: providers give each customer a network,
  // and a client may use all of its addresses.
  uint8_t ipv6_prefix_bits = 64;
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
  void Begin(const RequestHead& request, const AttributeOptions& options, TokenReader& tokens,
             int64_t now_s);

  // Sets `value`, which is valid until the next Begin. Appends to `text` if the value is not a part
  // of the request.
  AttributeProblem Read(const Attribute& attribute, std::string& text, std::string_view& value);

  // The complete address, for lists of networks.
  AttributeProblem ClientIp(base::IpAddress& address);
  // The normalized path; kInvalid if it, or the query behind it, is ambiguous.
  AttributeProblem Path(std::string_view& path);
  // kInvalid if it has lower-case letters: methods are case-sensitive (RFC 9110, 9.1), but many
  // backends read `post` as POST.
  AttributeProblem Method(std::string_view& method) const;
  // The normalized host; kInvalid if it is ambiguous.
  AttributeProblem Host(std::string_view& host);
  const RequestHead& request() const { return *request_; }
  // Whether anything of this request depends on its path.
  bool has_read_path() const { return path_state_.has_value(); }

 private:
  AttributeProblem Query(const Attribute& attribute, std::string& text) const;
  AttributeProblem PathPart(const Attribute& attribute, std::string_view& value);
  AttributeProblem ClientNetwork(std::string& text);
  AttributeProblem Geohash(const Attribute& attribute, std::string& text) const;

  const RequestHead* request_ = nullptr;
  const AttributeOptions* options_ = nullptr;
  TokenReader* tokens_ = nullptr;
  int64_t now_s_ = 0;
  std::optional<AttributeProblem> path_state_;
  std::string path_;
  std::optional<AttributeProblem> host_state_;
  std::string host_;
  std::optional<ClientAddress> client_;
};

}  // namespace headgate::mapping
