// The verbs that begin a conversation: HELLO, AUTH, SELECT. Replies and error texts are those of
// Redis, so clients work unmodified.
#pragma once

#include <string>
#include <string_view>

#include "headgate/front/resp/client_list.h"
#include "headgate/front/resp/counters.h"
#include "headgate/http/access.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// Each function answers one command and returns false after an error.
class ConnectionVerbs {
 public:
  ConnectionVerbs(const http::Access& access, Counters& counters)
      : access_(access), counters_(counters) {}

  bool Hello(const wire::RespParser& command, ClientState& client, std::string& output) const;
  bool Auth(const wire::RespParser& command, ClientState& client, wire::RespWriter& reply) const;
  bool Select(const wire::RespParser& command, wire::RespWriter& reply) const;

 private:
  bool LogIn(std::string_view user, std::string_view password) const;

  const http::Access& access_;
  Counters& counters_;
};

}  // namespace headgate::front::resp
