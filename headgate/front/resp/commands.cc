#include "headgate/front/resp/commands.h"

#include <array>

#include "headgate/base/text.h"

namespace headgate::front::resp {
namespace {

using access::Right;

// The command that must be found fastest comes first.
constexpr std::array kCommands{
    CommandSpec{.name = "cl.throttle",
                .verb = Verb::kThrottle,
                .arity = -5,
                .needs = Right::kCheck,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1},
    CommandSpec{.name = "gcra",
                .verb = Verb::kGcra,
                .arity = -5,
                .needs = Right::kCheck,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1},
    CommandSpec{.name = "hg.checkm",
                .verb = Verb::kHgCheckM,
                .arity = -6,
                .needs = Right::kCheck,
                .first_key = 1,
                .last_key = -1,
                .key_step = 5},
    CommandSpec{.name = "increx",
                .verb = Verb::kIncrEx,
                .arity = -2,
                .needs = Right::kCheck,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1},
    CommandSpec{.name = "hg.check", .verb = Verb::kHgCheck, .arity = -6, .needs = Right::kCheck},
    CommandSpec{.name = "hg.peek", .verb = Verb::kHgPeek, .arity = -6, .needs = Right::kCheck},
    CommandSpec{.name = "hg.refund", .verb = Verb::kHgRefund, .arity = -6, .needs = Right::kRefund},
    CommandSpec{
        .name = "hg.acquire", .verb = Verb::kHgAcquire, .arity = -6, .needs = Right::kCheck},
    CommandSpec{
        .name = "hg.release", .verb = Verb::kHgRelease, .arity = -8, .needs = Right::kCheck},
    CommandSpec{.name = "hg.reset", .verb = Verb::kHgReset, .arity = -6, .needs = Right::kAdmin},
    CommandSpec{.name = "del",
                .verb = Verb::kDel,
                .arity = -2,
                .needs = Right::kAdmin,
                .first_key = 1,
                .last_key = -1,
                .key_step = 1},
    CommandSpec{.name = "exists",
                .verb = Verb::kExists,
                .arity = -2,
                .needs = Right::kRead,
                .first_key = 1,
                .last_key = -1,
                .key_step = 1},
    CommandSpec{.name = "ttl",
                .verb = Verb::kTtl,
                .arity = 2,
                .needs = Right::kRead,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1},
    CommandSpec{.name = "pttl",
                .verb = Verb::kPttl,
                .arity = 2,
                .needs = Right::kRead,
                .first_key = 1,
                .last_key = 1,
                .key_step = 1},
    CommandSpec{.name = "ping", .verb = Verb::kPing, .arity = -1, .before_login = true},
    CommandSpec{.name = "echo", .verb = Verb::kEcho, .arity = 2},
    CommandSpec{.name = "hello", .verb = Verb::kHello, .arity = -1, .before_login = true},
    CommandSpec{.name = "auth", .verb = Verb::kAuth, .arity = -2, .before_login = true},
    CommandSpec{.name = "select", .verb = Verb::kSelect, .arity = 2},
    CommandSpec{.name = "info", .verb = Verb::kInfo, .arity = -1},
    CommandSpec{.name = "client", .verb = Verb::kClient, .arity = -2},
    CommandSpec{.name = "command", .verb = Verb::kCommand, .arity = -1},
    CommandSpec{.name = "config", .verb = Verb::kConfig, .arity = -2},
    CommandSpec{.name = "time", .verb = Verb::kTime, .arity = 1},
    CommandSpec{.name = "dbsize", .verb = Verb::kDbSize, .arity = 1, .needs = Right::kRead},
    CommandSpec{.name = "role", .verb = Verb::kRole, .arity = 1},
    CommandSpec{.name = "eval", .verb = Verb::kEval, .arity = -3, .needs = Right::kCheck},
    CommandSpec{.name = "evalsha", .verb = Verb::kEvalSha, .arity = -3, .needs = Right::kCheck},
    CommandSpec{.name = "script", .verb = Verb::kScript, .arity = -2, .needs = Right::kCheck},
    CommandSpec{.name = "multi", .verb = Verb::kMulti, .arity = 1},
    CommandSpec{.name = "exec", .verb = Verb::kExec, .arity = 1},
    CommandSpec{.name = "discard", .verb = Verb::kDiscard, .arity = 1},
    CommandSpec{.name = "reset", .verb = Verb::kReset, .arity = 1, .before_login = true},
    CommandSpec{.name = "quit", .verb = Verb::kQuit, .arity = -1, .before_login = true},
    // The first words of an HTTP request, which a web page can make a browser send. Redis closes
    // the connection on these too.
    CommandSpec{
        .name = "post", .verb = Verb::kHttp, .arity = -1, .hidden = true, .before_login = true},
    CommandSpec{
        .name = "host:", .verb = Verb::kHttp, .arity = -1, .hidden = true, .before_login = true},
};

}  // namespace

std::span<const CommandSpec> Commands() { return kCommands; }

const CommandSpec* FindCommand(std::string_view name) {
  if (name == "CL.THROTTLE" || name == kCommands[0].name) [[likely]]
    return &kCommands[0];
  for (const CommandSpec& command : kCommands) {
    if (base::EqualsIgnoreCase(name, command.name)) return &command;
  }
  return nullptr;
}

}  // namespace headgate::front::resp
