// Every command this front knows, in one table: from it commands are found and checked, and COMMAND
// answers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace headgate::front::resp {

enum class Verb : uint8_t {
  kThrottle,
  kHgCheck,
  kHgPeek,
  kHgRefund,
  kHgReset,
  kPing,
  kEcho,
  kHello,
  kAuth,
  kSelect,
  kInfo,
  kClient,
  kCommand,
  kConfig,
  kTime,
  kDbSize,
  kRole,
  kMulti,
  kExec,
  kDiscard,
  kReset,
  kQuit,
  kHttp,
};

// Who may use a command.
enum class Needs : uint8_t {
  kNothing,
  kState,  // changes state by hand, or reveals it: http::Access decides
};

struct CommandSpec {
  std::string_view name;  // lower case
  Verb verb;
  int arity;  // of the whole command, its name included; -n: at least n
  Needs needs = Needs::kNothing;
  bool has_key = false;  // its first argument is a key, as cluster clients understand it
  bool hidden = false;   // no command, but known

  bool AcceptsCount(size_t arguments) const {
    return arity >= 0 ? arguments == static_cast<size_t>(arity)
                      : arguments >= static_cast<size_t>(-arity);
  }
};

std::span<const CommandSpec> Commands();

// Null where there is none of this name; upper and lower case are alike.
const CommandSpec* FindCommand(std::string_view name);

}  // namespace headgate::front::resp
