// All commands of this front, in one table. Commands are looked up and checked in it, and COMMAND
// reports it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "headgate/access/rights.h"

namespace headgate::front::resp {

enum class Verb : uint8_t {
  kThrottle,
  kGcra,
  kHgCheckM,
  kIncrEx,
  kDel,
  kHgCheck,
  kHgPeek,
  kHgRefund,
  kHgAcquire,
  kHgRelease,
  kHgReset,  // the last verb that changes state
  kExists,
  kTtl,
  kPttl,
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
  kEval,
  kEvalSha,
  kScript,
  kMulti,
  kExec,
  kDiscard,
  kReset,
  kQuit,
  kHttp,
};

struct CommandSpec {
  std::string_view name;  // lower case
  Verb verb;
  int arity;  // number of words including the command name; -n: at least n
  // Absent: every client with a login, or with any right, may send the command.
  std::optional<access::Right> needs{};
  // For cluster clients: the positions of the keys, as COMMAND reports them.
  int first_key = 0;
  int last_key = 0;
  int key_step = 0;
  bool hidden = false;  // recognized, but not listed as a command
  // Answered even if the client has to log in first.
  bool before_login = false;

  bool AcceptsCount(size_t arguments) const {
    return arity >= 0 ? arguments == static_cast<size_t>(arity)
                      : arguments >= static_cast<size_t>(-arity);
  }
};

std::span<const CommandSpec> Commands();

// Null if there is no command of this name. Case-insensitive.
const CommandSpec* FindCommand(std::string_view name);

}  // namespace headgate::front::resp
