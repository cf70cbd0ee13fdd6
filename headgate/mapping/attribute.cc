#include "headgate/mapping/attribute.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/mapping/geohash.h"
#include "headgate/wire/named_values.h"
#include "headgate/wire/request_host.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {
namespace {

using Problem = AttributeProblem;

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

// An empty value says nothing about the client.
Problem Checked(std::string_view value) {
  if (value.empty()) return Problem::kMissing;
  return base::HasControls(value) ? Problem::kInvalid : Problem::kNone;
}

Problem Checked(wire::Lookup lookup, std::string_view value) {
  return lookup == wire::Lookup::kFound ? Checked(value) : ProblemOf(lookup);
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

}  // namespace

void Attributes::Begin(const RequestHead& request, const AttributeOptions& options,
                       TokenReader& tokens, int64_t now_s) {
  request_ = &request;
  options_ = &options;
  tokens_ = &tokens;
  now_s_ = now_s;
  path_state_.reset();
  host_state_.reset();
  client_.reset();
  tokens.Begin();
}

Problem Attributes::Read(const Attribute& attribute, std::string& text, std::string_view& value) {
  const size_t begin = text.size();
  Problem problem = Problem::kNone;
  switch (attribute.kind) {
    case AttributeKind::kValue:
      value = attribute.name;
      return Problem::kNone;
    case AttributeKind::kHeader:
      return Checked(request_->FindHeader(attribute.name, value), value);
    case AttributeKind::kCookie:
      return Checked(request_->FindCookie(attribute.name, text, value), value);
    case AttributeKind::kMethod:
      return Method(value);
    case AttributeKind::kHost:
      return Host(value);
    case AttributeKind::kPath:
      return Path(value);
    case AttributeKind::kPathPrefix:
    case AttributeKind::kPathSegment:
      return PathPart(attribute, value);
    case AttributeKind::kQuery:
      problem = Query(attribute, text);
      break;
    case AttributeKind::kClientAddress:
      problem = ClientNetwork(text);
      break;
    case AttributeKind::kGeohash:
      problem = Geohash(attribute, text);
      break;
    case AttributeKind::kClaim:
      problem =
          ProblemOf(tokens_->Claim(attribute.issuer, attribute.claim, *request_, now_s_, text));
      break;
  }
  if (problem != Problem::kNone) return problem;
  value = std::string_view(text).substr(begin);
  return Checked(value);
}

Problem Attributes::Path(std::string_view& path) {
  if (!path_state_) {
    path_.clear();
    if (request_->target.empty()) {
      path_state_ = Problem::kMissing;
    } else {
      const bool valid =
          wire::IsPlainTarget(request_->target) && wire::NormalizePath(request_->path(), path_);
      path_state_ = valid ? Problem::kNone : Problem::kInvalid;
    }
  }
  path = path_;
  return *path_state_;
}

Problem Attributes::Query(const Attribute& attribute, std::string& text) const {
  if (!wire::IsPlainTarget(request_->target)) return Problem::kInvalid;
  return ProblemOf(wire::FindInQuery(request_->query(), attribute.name, text));
}

Problem Attributes::PathPart(const Attribute& attribute, std::string_view& value) {
  std::string_view path;
  if (const Problem problem = Path(path); problem != Problem::kNone) return problem;
  if (attribute.kind == AttributeKind::kPathPrefix) {
    // A shorter path is its own prefix.
    value = path.substr(0, EndOfSegments(path, attribute.count));
    return Problem::kNone;
  }
  const size_t begin = EndOfSegments(path, attribute.count - 1);
  const size_t end = EndOfSegments(path, attribute.count);
  if (end == path.npos) return Problem::kMissing;
  value = path.substr(begin + 1, end - begin - 1);
  return Checked(value);
}

Problem Attributes::Method(std::string_view& method) const {
  method = request_->method;
  const bool has_lower =
      std::any_of(method.begin(), method.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  return has_lower ? Problem::kInvalid : Checked(method);
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
  return *host_state_;
}

Problem Attributes::ClientIp(base::IpAddress& address) {
  if (!client_) client_ = FindClientAddress(*request_, options_->client_address);
  if (client_->address) {
    address = *client_->address;
    return Problem::kNone;
  }
  return client_->problem == ClientAddressProblem::kMissing ? Problem::kMissing : Problem::kInvalid;
}

Problem Attributes::ClientNetwork(std::string& text) {
  base::IpAddress address;
  if (const Problem problem = ClientIp(address); problem != Problem::kNone) return problem;
  AppendIpNetwork(NetworkOf(address, address.is_v4() ? 128 : options_->ipv6_prefix_bits), text);
  return Problem::kNone;
}

Problem Attributes::Geohash(const Attribute& attribute, std::string& text) const {
  std::string_view latitude_text;
  std::string_view longitude_text;
  for (const auto& [name, value] :
       {std::pair<const std::string&, std::string_view&>(attribute.name, latitude_text),
        std::pair<const std::string&, std::string_view&>(attribute.second_name, longitude_text)}) {
    const Problem problem = Checked(request_->FindHeader(name, value), value);
    if (problem != Problem::kNone) return problem;
  }
  const auto latitude = ParseDegrees(latitude_text, 90);
  const auto longitude = ParseDegrees(longitude_text, 180);
  if (!latitude || !longitude) return Problem::kInvalid;
  AppendGeohash(*latitude, *longitude, attribute.count, text);
  return Problem::kNone;
}

}  // namespace headgate::mapping
