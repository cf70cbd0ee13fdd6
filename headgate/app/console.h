// What a command talks to: data goes to `out`, everything else to `err`.
#pragma once

#include <ostream>
#include <string_view>

namespace headgate::app {

// The exit codes of every command.
inline constexpr int kExitOk = 0;           // done; allowed
inline constexpr int kExitDenied = 1;       // check: denied; scenario: a line differs
inline constexpr int kExitUsage = 2;        // wrong arguments, files or settings
inline constexpr int kExitUnreachable = 3;  // no server there, or an address cannot be had
inline constexpr int kExitNotSaved = 4;     // serve: the last snapshot could not be written

// Whether errors are coloured: `is_terminal` says what reads them, the two variables what that person and the terminal
// want. Null: the variable is not set.
bool WantsColor(bool is_terminal, const char* no_color, const char* term);

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;  // on `err`, by WantsColor

  // "error: …" and, if there is one, "hint: …".
  void Error(std::string_view what, std::string_view hint = {}) const;
  // "hint: …".
  void Hint(std::string_view what) const;
};

}  // namespace headgate::app
