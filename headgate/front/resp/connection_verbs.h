// The verbs that begin a conversation: HELLO, AUTH, SELECT. Replies and error texts are those of
// Redis, so clients work unmodified.
//
//   Read ──▶ without a login ─────────────────────▶ Complete
//        ──▶ LogIn, perhaps on another thread ──▶ Complete
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/front/resp/client_list.h"
#include "headgate/front/resp/late_reply.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// A HELLO or AUTH that was read.
struct Greeting {
  bool is_hello = false;
  wire::RespVersion version{};        // that is spoken afterwards
  std::optional<std::string> name{};  // of the client
  struct Login {
    std::string_view user;
    std::string_view password;
  };
  std::optional<Login> login{};  // its texts belong to the command
};

class ConnectionVerbs {
 public:
  ConnectionVerbs(access::Access& access, access::Post post)
      : access_(access), post_(std::move(post)) {}

  // Nothing after an error; the error is written to `reply`.
  std::optional<Greeting> ReadHello(const wire::RespParser& command, const ClientState& client,
                                    wire::RespWriter& reply) const;
  std::optional<Greeting> ReadAuth(const wire::RespParser& command, const ClientState& client,
                                   wire::RespWriter& reply) const;
  // Nothing if the result comes later, in `pending`.
  std::optional<access::Login> LogIn(const Greeting::Login& login, const net::Peer& peer,
                                     base::Instant now, access::PendingLogin& pending) const;
  // Writes the reply. If the login was accepted, or is not needed, changes the client.
  Answered Complete(const Greeting& greeting, std::optional<access::Login> login,
                    ClientState& client, const net::Peer& peer, std::string& output) const;
  // Returns false after an error.
  bool Select(const wire::RespParser& command, wire::RespWriter& reply) const;

 private:
  access::Access& access_;
  const access::Post post_;
};

}  // namespace headgate::front::resp
