// The output of a command: data goes to `out`, everything else to `err`.
#pragma once

#include <ostream>
#include <string_view>

namespace headgate::app {

// The exit statuses of every command; docs/reference/command-line.md has the same table.
inline constexpr int kExitOk = 0;  // done; allowed
inline constexpr int kExitDenied =
    1;  // check: denied; scenario: a line differs; bench: some answers were errors, or none came
inline constexpr int kExitUsage = 2;  // wrong arguments, files, settings or questions
inline constexpr int kExitUnreachable =
    3;  // check: no Headgate at the address; serve: cannot listen on an address; store: no DynamoDB
inline constexpr int kExitNotSaved = 4;   // serve: the last snapshot could not be written
inline constexpr int kExitUndecided = 5;  // check: Headgate answers, but cannot decide now
inline constexpr int kExitOutput = 6;     // done, but the output could not be written

// Whether to colour errors: only on a terminal, and not if the variables NO_COLOR and TERM forbid
// it. A null argument means that the variable is not set.
bool WantsColor(bool is_terminal, const char* no_color, const char* term);

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool color = false;     // on `err`, by WantsColor
  bool terminal = false;  // whether `err` is one
  // How this program was called, for commands in hints.
  std::string_view program = "headgate";

  // "error: …" and, if there is one, "hint: …". Bytes that a terminal would obey are shown as \xNN.
  void Error(std::string_view what, std::string_view hint = {}) const;
  // "hint: …".
  void Hint(std::string_view what) const;
  // Writes out what `out` still holds. Returns the exit status of a command that ends with `code`:
  // if its output could not be written, that is an error.
  int Finish(int code) const;
};

}  // namespace headgate::app
