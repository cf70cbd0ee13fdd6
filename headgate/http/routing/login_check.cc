#include "headgate/http/routing/login_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "headgate/http/problem.h"
#include "headgate/wire/digest.h"

namespace headgate::http::routing {
namespace {

// Longer fields are refused.
constexpr size_t kFieldBytesMax = 2048;

// The login of a request that waits for it.
struct AwaitedLogin {
  explicit AwaitedLogin(Suspension& suspension) : pending([&suspension] { suspension.wake(); }) {}
  access::PendingLogin pending;
};

ConnectionLogin& EnsureLogin(const Request& request, ConnectionLogin& otherwise) {
  if (request.connection_state == nullptr) return otherwise;
  if (*request.connection_state == nullptr)
    *request.connection_state = std::make_unique<ConnectionLogin>();
  return static_cast<ConnectionLogin&>(**request.connection_state);
}

void AskForLogin(Response& response) {
  response.AddField("WWW-Authenticate", R"(Bearer realm="headgate", Basic realm="headgate")");
}

}  // namespace

const ConnectionLogin* LoginOf(const Request& request) {
  return request.connection_state == nullptr
             ? nullptr
             : static_cast<const ConnectionLogin*>(request.connection_state->get());
}

bool LoginCheck::Allows(access::Right right, const Request& request, Response& response,
                        base::Instant now) const {
  const bool without_login = access_.WithoutLogin(request.peer).Has(right);
  if (without_login && !MustVerify(right, request)) {
    // An earlier request of the connection had a login; this one has none.
    if (request.connection_state != nullptr) request.connection_state->reset();
    return true;
  }
  if (!access_.has_logins()) {
    AnswerProblem(403, "without a credential on the server, only its own machine may do this",
                  "set a credential on the server and send it, or send the request from the "
                  "server's machine",
                  response);
    return false;
  }
  ConnectionLogin of_request;
  ConnectionLogin& kept = EnsureLogin(request, of_request);
  access::Identity* const identity = IdentityOf(request, response, now, kept);
  if (identity == nullptr) return false;
  const access::Rights rights = access_.RightsOf(request.peer, *identity);
  if (!identity->logged_in()) {
    // The user has been removed since.
    kept.field.clear();
    AnswerMissing(response);
    return false;
  }
  if (without_login || rights.Has(right)) return true;
  AnswerProblem(403, fmt::format("the user '{}' may not do this", identity->user),
                fmt::format("it needs the right '{}'", access::Name(right)), response);
  return false;
}

bool LoginCheck::MustVerify(access::Right right, const Request& request) const {
  if (right == access::Right::kCheck || !access_.has_logins()) return false;
  const std::string_view field = request.Field("Authorization");
  const std::string_view scheme = field.substr(0, field.find(' '));
  return EqualsIgnoreCase(scheme, "Basic") || EqualsIgnoreCase(scheme, "Bearer");
}

std::optional<LoginCheck::Presented> LoginCheck::Read(std::string_view field) const {
  const size_t space = field.find(' ');
  if (space == std::string_view::npos || field.size() > kFieldBytesMax) return std::nullopt;
  const std::string_view scheme = field.substr(0, space);
  std::string_view text = field.substr(space);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::string decoded;
  if (EqualsIgnoreCase(scheme, "Basic")) {
    if (!absl::Base64Unescape(absl::string_view(text.data(), text.size()), &decoded) ||
        decoded.find(':') == std::string::npos)
      return std::nullopt;
    text = decoded;
  } else if (!EqualsIgnoreCase(scheme, "Bearer")) {
    return std::nullopt;
  } else if (!access_.has_users()) {
    return Presented{.user = {}, .password = std::string(text)};
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Presented{.user = {}, .password = std::string(text)};
  // With the credential as the password, any name of a user will do.
  return Presented{.user = std::string(access_.has_users() ? text.substr(0, colon) : ""),
                   .password = std::string(text.substr(colon + 1))};
}

access::Identity* LoginCheck::IdentityOf(const Request& request, Response& response,
                                         base::Instant now, ConnectionLogin& kept) const {
  const std::string_view field = request.Field("Authorization");
  std::optional<access::Login> login;
  Suspension* const suspension = request.suspension;
  AwaitedLogin* const awaited = suspension == nullptr ? nullptr : suspension->Find<AwaitedLogin>();
  if (awaited != nullptr) {
    login = awaited->pending.result();
  } else {
    if (!kept.field.empty() && wire::EqualSecrets(kept.field, field)) return &kept.identity;
    const std::optional<Presented> presented = Read(field);
    if (!presented) {
      AnswerMissing(response);
      return nullptr;
    }
    Suspension for_this_call;
    for_this_call.wake = [] {};
    AwaitedLogin& waiting =
        (suspension == nullptr ? for_this_call : *suspension)
            .Ensure<AwaitedLogin>(suspension == nullptr ? for_this_call : *suspension);
    login = access_.LogIn(presented->user, presented->password, request.peer, now, post_,
                          waiting.pending);
  }
  // Without a suspension nobody could ask again.
  if (!login && suspension == nullptr) login = {.result = access::Login::Result::kBusy};
  response.later = !login;
  if (response.later) return nullptr;
  if (suspension != nullptr) suspension->Forget();
  if (login->result != access::Login::Result::kAccepted) {
    AnswerFailure(*login, response);
    return nullptr;
  }
  kept.field = field;
  kept.identity = std::move(login->identity);
  return &kept.identity;
}

void LoginCheck::AnswerMissing(Response& response) const {
  AskForLogin(response);
  if (access_.has_users()) {
    return AnswerProblem(401, "this request needs the login of a user",
                         "send Authorization: Basic, or Bearer USER:PASSWORD", response);
  }
  AnswerProblem(401, "this request needs the server's credential",
                "send Authorization: Bearer CREDENTIAL, or Basic with it as the password",
                response);
}

void LoginCheck::AnswerFailure(const access::Login& login, Response& response) const {
  switch (login.result) {
    case access::Login::Result::kLimited:
      response.AddField(
          "Retry-After",
          fmt::format("{}", std::chrono::ceil<std::chrono::seconds>(login.retry_after).count()));
      return AnswerProblem(429, "too many failed logins of this user from this address",
                           "try again after Retry-After seconds", response);
    case access::Login::Result::kBusy:
      response.AddField("Retry-After", "1");
      return AnswerProblem(503, "too many logins are being verified", "try again", response);
    case access::Login::Result::kWrong:
    case access::Login::Result::kAccepted:
      break;
  }
  if (!access_.has_users()) return AnswerMissing(response);
  AskForLogin(response);
  AnswerProblem(401, "the user or the password is wrong", "", response);
}

}  // namespace headgate::http::routing
