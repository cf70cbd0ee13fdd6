#include "headgate/mapping/attribute.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/mapping/geohash.h"
#include "headgate/wire/credentials.h"
#include "headgate/wire/field_value.h"
#include "headgate/wire/named_values.h"
#include "headgate/wire/request_host.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {
namespace {

using Problem = AttributeProblem;

constexpr wire::Why kWhyNotPlain =
    "servers differ in where a '#', or a byte that is not visible ASCII, ends the path or query";

Problem ProblemOf(wire::Lookup lookup) {
  switch (lookup) {
    case wire::Lookup::kFound:
      return Problem::kNone;
    case wire::Lookup::kAbsent:
      return Problem::kMissing;
    case wire::Lookup::kTwice:
    case wire::Lookup::kInvalid:
      break;
  }
  return Problem::kInvalid;
}

Problem ProblemOf(ClaimLookup lookup) {
  switch (lookup) {
    case ClaimLookup::kFound:
      return Problem::kNone;
    case ClaimLookup::kAbsent:
      return Problem::kMissing;
    case ClaimLookup::kExpired:
      return Problem::kExpired;
    case ClaimLookup::kNotValid:
      return Problem::kNotValid;
    case ClaimLookup::kAmbiguous:
      break;
  }
  return Problem::kInvalid;
}

// The end of the first `count` segments of a normalized path: of "/a/b/c" and 2 the end of "/a/b".
// npos if there are fewer.
size_t EndOfSegments(std::string_view path, uint32_t count) {
  size_t end = 0;
  for (; count > 0; --count) {
    if (end + 1 >= path.size()) return path.npos;
    end = std::min(path.find('/', end + 1), path.size());
  }
  return end;
}

bool IsJoined(std::string_view value) {
  for (size_t comma = value.find(','); comma != value.npos; comma = value.find(',', comma + 1)) {
    if (!value.substr(comma + 1).starts_with(' ')) return true;
  }
  return false;
}

// Sets `value` to the part of the path that the attribute names.
Problem PartOf(std::string_view path, const Attribute& attribute, std::string_view& value) {
  if (attribute.kind == AttributeKind::kPath) {
    value = path;
    return Problem::kNone;
  }
  if (attribute.kind == AttributeKind::kPathPrefix) {
    // A shorter path is its own prefix.
    value = path.substr(0, EndOfSegments(path, attribute.count));
    return Problem::kNone;
  }
  const size_t begin = EndOfSegments(path, attribute.count - 1);
  const size_t end = EndOfSegments(path, attribute.count);
  if (end == path.npos) return Problem::kMissing;
  value = path.substr(begin + 1, end - begin - 1);
  return value.empty() ? Problem::kMissing : Problem::kNone;
}

}  // namespace

void Attributes::Begin(const DescribedRequest& request, const AttributeOptions& options,
                       TokenReader& tokens, int64_t now_s) {
  request_ = &request;
  options_ = &options;
  tokens_ = &tokens;
  now_s_ = now_s;
  path_state_.reset();
  host_state_.reset();
  client_.reset();
  why_ = why_path_ = {};
  tokens.Begin();
}

Problem Attributes::Checked(std::string_view value) {
  if (value.empty()) return Problem::kMissing;
  return base::HasControls(value) ? Invalid("it has a control character") : Problem::kNone;
}

Problem Attributes::Checked(wire::Lookup lookup, std::string_view value) {
  return lookup == wire::Lookup::kFound ? Checked(value) : ProblemOf(lookup);
}

Problem Attributes::Read(const Attribute& attribute, std::string& text, std::string_view& value) {
  const size_t begin = text.size();
  Problem problem = Problem::kNone;
  value = {};
  switch (attribute.kind) {
    case AttributeKind::kValue:
      value = attribute.name;
      return Problem::kNone;
    case AttributeKind::kHeader:
      return Header(attribute.name, text, value);
    case AttributeKind::kBearer:
      return Bearer(value);
    case AttributeKind::kCookie:
      return Checked(request_->FindCookie(attribute.name, text, value, &why_), value);
    case AttributeKind::kMethod:
      problem = Method(value);
      if (value == "HEAD") value = "GET";
      return problem;
    case AttributeKind::kHost:
      return Host(value);
    case AttributeKind::kPath:
    case AttributeKind::kPathPrefix:
    case AttributeKind::kPathSegment:
      return PathPart(attribute, value);
    case AttributeKind::kQuery:
      problem = Query(attribute, text);
      break;
    case AttributeKind::kClientAddress:
      problem = ClientNetwork(text);
      break;
    case AttributeKind::kNetwork:
      return NamedNetwork(attribute, value);
    case AttributeKind::kGeohash:
      problem = Geohash(attribute, text);
      break;
    case AttributeKind::kClaim:
      problem =
          ProblemOf(tokens_->Claim(attribute.issuer, attribute.claim, *request_, now_s_, text));
      if (problem == Problem::kInvalid)
        why_ = "the header or cookie of the token comes twice, or is malformed";
      break;
  }
  if (problem != Problem::kNone) return problem;
  value = std::string_view(text).substr(begin);
  return Checked(value);
}

Problem Attributes::Path(std::string_view& path) {
  if (!path_state_) {
    path_.clear();
    unresolved_path_.clear();
    if (request_->target.empty()) {
      path_state_ = Problem::kMissing;
    } else if (request_->target == "*" && request_->method == "OPTIONS") {
      // `OPTIONS *` asks about the server as a whole (RFC 9110, 7.1).
      path_ = request_->target;
      path_state_ = Problem::kNone;
    } else {
      const std::string_view sent = request_->path();
      wire::PathOptions options{.parameters = options_->path_parameters};
      const bool is_plain = wire::IsPlainTarget(request_->target);
      if (!is_plain) why_path_ = kWhyNotPlain;
      const bool valid = is_plain && wire::NormalizePath(sent, path_, options, &why_path_);
      path_state_ = valid ? Problem::kNone : Problem::kInvalid;
      if (valid && !request_->is_path_normalized && wire::HasDotSegments(sent)) {
        options.resolves_dots = false;
        wire::NormalizePath(sent, unresolved_path_, options);
        // Servers differ in whether the resolved path of "/a/b/.." ends with a slash.
        if (unresolved_path_.ends_with("/.") || unresolved_path_.ends_with("/..")) {
          path_state_ = Problem::kInvalid;
          why_path_ =
              "the path ends with a dot segment, in place of which some servers leave a '/'";
        }
      }
    }
    has_script_ = path_state_ == Problem::kNone && wire::HasScript(path_);
  }
  path = path_;
  if (path_state_ == Problem::kInvalid) why_ = why_path_;
  return *path_state_;
}

Problem Attributes::Query(const Attribute& attribute, std::string& text) {
  if (!wire::IsPlainTarget(request_->target)) return Invalid(kWhyNotPlain);
  return ProblemOf(wire::FindInQuery(request_->query(), attribute.name, text, &why_));
}

Problem Attributes::FindHeader(std::string_view name, std::string_view& value) {
  const wire::Lookup lookup = request_->FindHeader(name, value, &why_);
  if (lookup != wire::Lookup::kFound) return ProblemOf(lookup);
  if (!options_->may_join_fields || !IsJoined(value)) return Problem::kNone;
  return Invalid("it has a comma without a space, as Envoy joins two fields of one name");
}

Problem Attributes::Header(const std::string& name, std::string& text, std::string_view& value) {
  const Problem problem = FindHeader(name, value);
  if (problem != Problem::kNone) return problem;
  return wire::ReadFieldValue(name, value, text, value, &why_) ? Checked(value) : Problem::kInvalid;
}

Problem Attributes::Bearer(std::string_view& value) {
  constexpr std::string_view kName = "Authorization";
  std::string_view credentials;
  if (const Problem problem = FindHeader(kName, credentials); problem != Problem::kNone)
    return problem;
  std::string canonical;
  std::string_view read;
  if (!wire::ReadFieldValue(kName, credentials, canonical, read, &why_)) return Problem::kInvalid;
  return Checked(wire::BearerOf(credentials, value), value);
}

// Servers that do not resolve dot segments must read the same value.
Problem Attributes::PathPart(const Attribute& attribute, std::string_view& value) {
  std::string_view path;
  if (const Problem problem = Path(path); problem != Problem::kNone) return problem;
  const Problem problem = PartOf(path, attribute, value);
  if (unresolved_path_.empty()) return problem;
  std::string_view unresolved;
  const bool is_same = PartOf(unresolved_path_, attribute, unresolved) == problem &&
                       (problem != Problem::kNone || unresolved == value);
  return is_same ? problem
                 : Invalid("a server that does not resolve dot segments finds another value");
}

bool Attributes::FitsBehindScript(absl::FunctionRef<bool(std::string_view)> fits) const {
  return has_script_ && wire::FitsBehindScript(path_, fits);
}

bool Attributes::IsInBehindScript(const Attribute& attribute,
                                  absl::FunctionRef<bool(std::string_view)> is_in) const {
  return FitsBehindScript([&](std::string_view path) {
    std::string_view part;
    return PartOf(path, attribute, part) == Problem::kNone && is_in(part);
  });
}

Problem Attributes::Method(std::string_view& method) {
  method = request_->method;
  const bool has_lower =
      std::any_of(method.begin(), method.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return has_lower ? Invalid(
                         "some servers read a method with lower-case letters as if it were in "
                         "upper case")
                   : Checked(method);
}

Problem Attributes::Host(std::string_view& host) {
  if (!host_state_) {
    host_.clear();
    if (request_->host.empty()) {
      host_state_ = Problem::kMissing;
    } else {
      host_state_ = wire::NormalizeHost(request_->host, host_) ? Problem::kNone : Problem::kInvalid;
    }
  }
  host = host_;
  if (host_state_ == Problem::kInvalid)
    why_ = "the host is not a name, or an address, with at most one port";
  return *host_state_;
}

Problem Attributes::FindClient() {
  if (!client_) client_ = FindClientAddress(*request_, options_->client_address);
  if (client_->address) return Problem::kNone;
  if (client_->problem == ClientAddressProblem::kMissing) return Problem::kMissing;
  return Invalid(
      "the forwarding header is malformed or too long, or its member for the client is not an "
      "address");
}

Problem Attributes::IsClientIn(const base::IpNetworkSet& networks, bool& is_in) {
  const Problem problem = FindClient();
  is_in = problem == Problem::kNone &&
          (networks.Contains(*client_->address) || networks.Contains(*client_->sent));
  return problem;
}

Problem Attributes::ClientNetwork(std::string& text) {
  if (const Problem problem = FindClient(); problem != Problem::kNone) return problem;
  const base::IpAddress& address = *client_->address;
  AppendIpNetwork(NetworkOf(address, address.is_v4() ? 128 : options_->ipv6_prefix_bits), text);
  return Problem::kNone;
}

Problem Attributes::GivenLimit(const Attribute& attribute, std::string& text,
                               std::string_view& value) {
  if (attribute.kind == AttributeKind::kHeader && !options_->Believes(*request_))
    return Problem::kMissing;
  return Read(attribute, text, value);
}

// An IPv4 address inside an IPv6 address is looked up first, as for keys.
Problem Attributes::NamedNetwork(const Attribute& attribute, std::string_view& value) {
  if (const Problem problem = FindClient(); problem != Problem::kNone) return problem;
  const NetworkTable& table = options_->networks[attribute.table];
  value = table.NameOf(*client_->address);
  if (value.empty()) value = table.NameOf(*client_->sent);
  if (value.empty()) value = attribute.name;
  return value.empty() ? Problem::kMissing : Problem::kNone;
}

Problem Attributes::Geohash(const Attribute& attribute, std::string& text) {
  std::string_view latitude_text;
  std::string_view longitude_text;
  for (const auto& [name, value] :
       {std::pair<const std::string&, std::string_view&>(attribute.name, latitude_text),
        std::pair<const std::string&, std::string_view&>(attribute.second_name, longitude_text)}) {
    const Problem problem = Checked(request_->FindHeader(name, value, &why_), value);
    if (problem != Problem::kNone) return problem;
  }
  const auto latitude = ParseDegrees(latitude_text, 90);
  const auto longitude = ParseDegrees(longitude_text, 180);
  if (!latitude || !longitude) return Invalid("a coordinate is not a number of degrees");
  AppendGeohash(*latitude, *longitude, attribute.count, text);
  return Problem::kNone;
}

}  // namespace headgate::mapping
