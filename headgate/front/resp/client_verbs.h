// CLIENT: commands with which clients describe themselves and query connections.
#pragma once

#include "headgate/base/time.h"
#include "headgate/front/resp/client_list.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// Names must be printable and without spaces, because they appear in lists that are split at
// spaces.
bool IsClientName(std::string_view name);
inline constexpr std::string_view kBadClientName =
    "ERR Client names cannot contain spaces, newlines or special characters.";

// Whether CLIENT `subcommand` reveals something about other clients.
bool RevealsClients(std::string_view subcommand);

// The client that sent the command.
struct Caller {
  ClientState& state;
  const ClientList& clients;
  const ClientList::Registration& registration;
};

// Answers one CLIENT command. Returns false after an error. If the subcommand reveals other
// clients, the caller must have checked that this client may see them. The caller also passes
// changes of `caller.state` on to the list.
bool AnswerClient(const wire::RespParser& command, const Caller& caller, wire::RespWriter& reply,
                  base::Instant now);

}  // namespace headgate::front::resp
