#include "headgate/app/tools/hash_password.h"

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <optional>

#include "headgate/access/password_hash.h"

namespace headgate::app {
namespace {

// Hides what is typed until it is destroyed.
class HiddenInput {
 public:
  HiddenInput() {
    ::tcgetattr(STDIN_FILENO, &shown_);
    termios hidden = shown_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() { ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown_); }
  HiddenInput(const HiddenInput&) = delete;

 private:
  termios shown_{};
};

std::optional<std::string> ReadLine(std::string_view prompt, const Console& console) {
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  std::optional<HiddenInput> hidden;
  if (is_terminal) {
    console.err << prompt << std::flush;
    hidden.emplace();
  }
  std::string line;
  const bool read = static_cast<bool>(std::getline(std::cin, line));
  if (is_terminal) console.err << '\n';
  if (!read || line.empty()) return std::nullopt;
  return line;
}

}  // namespace

int HashPassword(const std::vector<std::string>& arguments, const Console& console) {
  if (!arguments.empty()) {
    // The argument may be the password: it is not repeated.
    console.Error("`headgate hash-password` takes no arguments: others can see them",
                  "type the password, or write it to stdin");
    return kExitUsage;
  }
  const std::optional<std::string> password = ReadLine("password: ", console);
  if (!password) {
    console.Error("no password was given", "type it, or write it to stdin");
    return kExitUsage;
  }
  if (::isatty(STDIN_FILENO) == 1 && ReadLine("again: ", console) != password) {
    console.Error("the two passwords are different", "try again");
    return kExitUsage;
  }
  console.out << access::HashPassword(*password) << '\n';
  return kExitOk;
}

}  // namespace headgate::app
