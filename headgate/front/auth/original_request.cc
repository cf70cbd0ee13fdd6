#include "headgate/front/auth/original_request.h"

#include "headgate/net/loopback.h"

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
bool ReadHeaders(const HeaderNames& names, mapping::DescribedRequest& head) {
  using enum wire::Lookup;
  return head.FindField(names.target, head.target) != kTwice &&
         head.FindField(names.method, head.method) != kTwice &&
         head.FindField(names.host, head.host) != kTwice;
}

}  // namespace

bool ReadOriginalRequest(const http::Request& request, OriginalRequest form,
                         mapping::DescribedRequest& head) {
  head = {};
  head.fields = request.fields;
  head.peer = request.peer.ip;
  head.may_be_trusted = !net::OnlySeemsLocal(request.peer);
  switch (form) {
    case OriginalRequest::kNone:
      return true;
    case OriginalRequest::kXOriginal:
      return ReadHeaders(kXOriginal, head);
    case OriginalRequest::kXForwarded:
      return ReadHeaders(kXForwarded, head);
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
