#include "headgate/front/resp/script_verbs.h"

#include <fmt/format.h>

#include "headgate/base/text.h"
#include "headgate/front/resp/throttle_arguments.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/wire/digest.h"

namespace headgate::front::resp {
namespace {

absl::Status Wrong(std::string_view text) {
  return absl::InvalidArgumentError(fmt::format("ERR {}", text));
}

std::string_view View(absl::string_view text) { return {text.data(), text.size()}; }

}  // namespace

// The errors are those of Redis.
absl::StatusOr<CommandWords> ScriptVerbs::Expand(bool by_text, const wire::RespParser& command) {
  const std::optional<int64_t> keys = ParseInteger(command[2]);
  if (!keys) return Wrong("value is not an integer or out of range");
  if (*keys < 0) return Wrong("Number of keys can't be negative");
  if (*keys > static_cast<int64_t>(command.size() - 3))
    return Wrong("Number of keys can't be greater than number of args");
  auto script = by_text ? cache_.OfText(command[1]) : cache_.OfSha1(command[1]);
  if (absl::IsNotFound(script.status())) return script.status();
  if (!script.ok()) return Wrong(View(script.status().message()));
  script_ = *std::move(script);
  arguments_.keys = static_cast<size_t>(*keys);
  arguments_.words.clear();
  for (size_t i = 3; i < command.size(); ++i) arguments_.words.push_back(command[i]);
  auto words = script_->call().Expand(arguments_);
  if (!words.ok()) return Wrong(View(words.status().message()));
  return words;
}

bool ScriptVerbs::Script(const wire::RespParser& command,
                         absl::FunctionRef<bool(std::string_view)> refuses,
                         wire::RespWriter& reply) {
  const std::string_view sub = command[1];
  if (base::EqualsIgnoreCase(sub, "load")) {
    if (command.size() != 3) return WrongCount(reply, "script", "load");
    if (const auto script = cache_.OfText(command[2]); !script.ok())
      return Refuse(reply, fmt::format("ERR {}", View(script.status().message())));
    reply.Bulk(wire::DigestHex(wire::Digest::kSha1, command[2]));
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "exists")) {
    if (command.size() < 3) return WrongCount(reply, "script", "exists");
    reply.Array(command.size() - 2);
    for (size_t i = 2; i < command.size(); ++i) reply.Integer(cache_.Exists(command[i]) ? 1 : 0);
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "flush")) {
    if (refuses("script|flush")) return false;
    cache_.Flush();
    return Accept(reply);
  }
  if (base::EqualsIgnoreCase(sub, "help"))
    return Help(reply, {"SCRIPT [LOAD script | EXISTS sha1 [sha1 …] | FLUSH [ASYNC | SYNC]]"});
  return UnknownSubcommand(reply, "SCRIPT", sub);
}

}  // namespace headgate::front::resp
