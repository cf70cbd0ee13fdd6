// The verbs that clients send about the connection itself, mostly before anything else: HELLO, AUTH, SELECT, CLIENT,
// COMMAND, CONFIG GET, INFO. Answers and error texts are those of Redis, so that clients work unmodified.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/front/resp/counters.h"
#include "headgate/net/access.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// What Redis's clients are told, for those that ask before they use what came with it.
inline constexpr std::string_view kRedisVersion = "7.2.0";

// What one client has said about itself.
struct ClientState {
  uint64_t id = 0;
  wire::RespVersion version = wire::RespVersion::k2;
  bool authenticated = false;
  std::string name;
};

// One command at a time. Each answers true, or false after an error.
class ConnectionVerbs {
 public:
  ConnectionVerbs(const net::Access& access, std::string_view version, Counters& counters)
      : access_(access), version_(version), counters_(counters) {}

  bool Hello(const wire::RespParser& command, ClientState& client, std::string& output) const;
  bool Auth(const wire::RespParser& command, ClientState& client, wire::RespWriter& reply) const;
  bool Select(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Client(const wire::RespParser& command, ClientState& client, wire::RespWriter& reply) const;
  bool Command(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Config(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Info(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Time(wire::RespWriter& reply, base::Instant now) const;

 private:
  bool LogIn(std::string_view user, std::string_view password) const;

  const net::Access& access_;
  const std::string version_;
  Counters& counters_;
};

}  // namespace headgate::front::resp
