// What a command talks to: data goes to `out`, everything else to `err`.
#pragma once

#include <ostream>
#include <string_view>

namespace headgate::app {

// The exit codes of every command.
inline constexpr int kExitOk = 0;           // done; allowed
inline constexpr int kExitDenied = 1;       // check: denied; scenario: a line differs
inline constexpr int kExitUsage = 2;        // wrong arguments, files or settings
inline constexpr int kExitUnreachable = 3;  // no server there, or no address to be had

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;  // on `err`, where a person reads it and NO_COLOR is not set

  // "error: …" and, where there is one, "hint: …".
  void Error(std::string_view what, std::string_view hint = {}) const;
};

}  // namespace headgate::app
