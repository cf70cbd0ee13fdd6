#include "headgate/front/auth/original_request.h"

#include <array>

#include "headgate/base/text.h"

namespace headgate::front::auth {
namespace {

using mapping::OriginalRequest;

struct HeaderNames {
  std::string_view target;
  std::string_view method;
  std::string_view host;
};
constexpr HeaderNames kXOriginal = {"X-Original-URI", "X-Original-Method", "X-Original-Host"};
constexpr HeaderNames kXForwarded = {"X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"};

// False if one of the headers comes twice.
bool ReadHeaders(const http::Request& request, const HeaderNames& names,
                 mapping::RequestHead& head) {
  std::array<bool, 3> seen{};
  const std::array<std::pair<std::string_view, std::string_view*>, 3> wanted = {
      {{names.target, &head.target}, {names.method, &head.method}, {names.host, &head.host}}};
  for (const auto& [name, value] : request.fields) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!base::EqualsIgnoreCase(name, wanted[i].first)) continue;
      if (seen[i]) return false;
      seen[i] = true;
      *wanted[i].second = value;
    }
  }
  return true;
}

}  // namespace

bool ReadOriginalRequest(const http::Request& request, OriginalRequest form,
                         mapping::RequestHead& head) {
  head = {};
  head.fields = request.fields;
  head.peer = request.peer.ip;
  switch (form) {
    case OriginalRequest::kNone:
      return true;
    case OriginalRequest::kXOriginal:
      return ReadHeaders(request, kXOriginal, head);
    case OriginalRequest::kXForwarded:
      return ReadHeaders(request, kXForwarded, head);
    case OriginalRequest::kLine:
      head.method = request.method;
      head.host = request.host;
      head.target = request.target.substr(kPath.size());
      if (!head.target.starts_with('/')) head.target = "/";
      return true;
  }
  return true;
}

}  // namespace headgate::front::auth
