// The Lua twins of the kernels: one script for each family of algorithms. A server that knows a
// script runs it by its SHA-1 (EVALSHA); a server that does not (NOSCRIPT) gets the text once
// (EVAL).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/algorithm/limit.h"

namespace headgate::store::redis {

struct Script {
  std::string_view name{};  // for people
  std::string_view text{};
  std::string sha1{};  // 40 hex digits
  // In wire format: the words of a command before its key.
  std::string by_digest{};
  std::string by_text{};
};

// `text` must outlive it.
Script MakeScript(std::string_view name, std::string_view text);

// The script that decides for this algorithm; the same object every time.
const Script& ScriptOf(algorithm::Algorithm algorithm);

std::span<const Script> AllScripts();

}  // namespace headgate::store::redis
