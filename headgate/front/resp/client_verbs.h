// CLIENT: what a client says and asks about connections.
#pragma once

#include "headgate/base/time.h"
#include "headgate/front/resp/client_list.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// Printable, without spaces: names appear in lists that are split at spaces.
bool IsClientName(std::string_view name);
inline constexpr std::string_view kBadClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// Whether CLIENT's `subcommand` reveals something about other clients.
bool RevealsClients(std::string_view subcommand);

// Who asks.
struct Caller {
  ClientState& state;
  const ClientList& clients;
  const ClientList::Registration& registration;
};

// Answers one CLIENT command: true, or false after an error. The caller makes sure that the client
// may see other clients, where the subcommand reveals them, and tells the list what has changed in
// `caller.state`.
bool AnswerClient(const wire::RespParser& command, const Caller& caller, wire::RespWriter& reply,
                  base::Instant now);

}  // namespace headgate::front::resp
