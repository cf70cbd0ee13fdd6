// Replies of commands about the connection and the server, in Redis's words. Each returns true
// after a value and false after an error.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/front/resp/late_reply.h"
#include "headgate/front/resp/throttle_reply.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// The longest part of an argument that an error repeats.
inline constexpr size_t kEchoedMax = 128;

// Writes the error of a command that failed.
inline Answered WriteError(const absl::Status& status, std::string& output,
                           wire::RespVersion version = wire::RespVersion::k2) {
  const absl::string_view text = status.message();
  const std::string_view message(text.data(), text.size());
  wire::RespWriter(output, version)
      .Error(message == kWrongType ? std::string(message) : fmt::format("ERR {}", message));
  return Answered::kWithError;
}

inline bool Refuse(wire::RespWriter& reply, std::string_view text) {
  reply.Error(text);
  return false;
}

inline bool Accept(wire::RespWriter& reply) {
  reply.Simple("OK");
  return true;
}

inline bool UnknownSubcommand(wire::RespWriter& reply, std::string_view command,
                              std::string_view subcommand) {
  return Refuse(reply, fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                                   subcommand.substr(0, kEchoedMax), command));
}

inline bool WrongCount(wire::RespWriter& reply, std::string_view command,
                       std::string_view subcommand) {
  return Refuse(
      reply, fmt::format("ERR wrong number of arguments for '{}|{}' command", command, subcommand));
}

inline bool Help(wire::RespWriter& reply, std::initializer_list<std::string_view> lines) {
  reply.Array(lines.size());
  for (const std::string_view line : lines) reply.Simple(line);
  return true;
}

}  // namespace headgate::front::resp
