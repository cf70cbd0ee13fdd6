// The verbs that begin a conversation: HELLO, AUTH, SELECT. Replies and error texts are those of
// Redis, so clients work unmodified.
//
// A password may have to be verified on another thread. Then AUTH or HELLO is not answered yet, and
// the command is run again once there is a result.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/front/resp/client_list.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// A client that logs in.
struct LoginTurn {
  ClientState& client;
  // The session's; not null while a password is being verified.
  std::unique_ptr<access::PendingLogin>& pending;
  const net::Peer& peer;
  const std::function<void()>& wake;
  base::Instant now;
};

class ConnectionVerbs {
 public:
  ConnectionVerbs(access::Access& access, access::Post post)
      : access_(access), post_(std::move(post)) {}

  enum class Answered : uint8_t { kWell, kWithError, kLater };
  Answered Hello(const wire::RespParser& command, const LoginTurn& turn, std::string& output) const;
  Answered Auth(const wire::RespParser& command, const LoginTurn& turn,
                wire::RespWriter& reply) const;
  // Returns false after an error.
  bool Select(const wire::RespParser& command, wire::RespWriter& reply) const;

 private:
  // Changes the identity of the client if the login is accepted; otherwise writes the error.
  Answered LogIn(std::string_view user, std::string_view password, const LoginTurn& turn,
                 wire::RespWriter& refusal) const;

  access::Access& access_;
  const access::Post post_;
};

}  // namespace headgate::front::resp
