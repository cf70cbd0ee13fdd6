// Whether a request may do what it asks for: by the login in its Authorization field, or without.
//
//   Authorization: Basic <base64 of user:password>
//   Authorization: Bearer <user:password>             if users are stated
//   Authorization: Bearer <credential>                also the password of Basic
//
// If a request needs more than the right `check`, a login that it presents is verified even if the
// client would have the right without it: a wrong login is refused and counted, and a right one
// names the user. If it needs only `check`, the login is not verified then, because the field may
// be meant for the server behind a proxy.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/http/handler.h"

namespace headgate::http::routing {

// The login that a connection verified last, with its Authorization field. Later requests of the
// connection with the same field need no comparison of passwords.
struct ConnectionLogin final : ConnectionState {
  std::string field{};  // empty: none was verified
  access::Identity identity{};
};
// Null if the connection has none yet.
const ConnectionLogin* LoginOf(const Request& request);

// One per loop; not thread-safe.
class LoginCheck {
 public:
  LoginCheck(access::Access& access, access::Post post) : access_(access), post_(std::move(post)) {}

  // Returns false after it has refused the request, or if the answer comes later
  // (`response.later`).
  bool Allows(access::Right right, const Request& request, Response& response,
              base::Instant now) const;

 private:
  struct Presented {
    std::string user;
    std::string password;
  };
  bool MustVerify(access::Right right, const Request& request) const;
  std::optional<Presented> Read(std::string_view field) const;
  // Returns null after it has refused the request, or if the login comes later.
  access::Identity* IdentityOf(const Request& request, Response& response, base::Instant now,
                               ConnectionLogin& kept) const;
  void AnswerFailure(const access::Login& login, Response& response) const;
  void AnswerMissing(Response& response) const;

  access::Access& access_;
  const access::Post post_;
};

}  // namespace headgate::http::routing
