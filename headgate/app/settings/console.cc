#include "headgate/app/settings/console.h"

#include "headgate/rule/quote.h"

namespace headgate::app {
namespace {

constexpr std::string_view kRed = "\033[1;31m";
constexpr std::string_view kCyan = "\033[36m";
constexpr std::string_view kPlain = "\033[0m";

// A message may repeat text from a user or a server. Control characters are escaped, so that this
// text cannot command the terminal. Line feeds stay.
void Write(const Console& console, std::string_view word, std::string_view shade,
           std::string_view what) {
  console.err << (console.color ? shade : "") << word << (console.color ? kPlain : "") << ' ';
  for (size_t end = what.find('\n'); end != what.npos; end = what.find('\n')) {
    console.err << rule::Printable(what.substr(0, end)) << '\n';
    what.remove_prefix(end + 1);
  }
  console.err << rule::Printable(what) << '\n';
}

}  // namespace

bool WantsColor(bool is_terminal, const char* no_color, const char* term) {
  const std::string_view refused = no_color == nullptr ? "" : no_color;
  const std::string_view terminal = term == nullptr ? "" : term;
  return is_terminal && refused.empty() && terminal != "dumb";
}

void Console::Error(std::string_view what, std::string_view hint) const {
  Write(*this, "error:", kRed, what);
  if (!hint.empty()) Hint(hint);
}

void Console::Hint(std::string_view what) const { Write(*this, "hint:", kCyan, what); }

int Console::Finish(int code) const {
  if (out.flush()) return code;
  Error("the output could not be written completely",
        "the disk may be full, or the program that reads it has ended");
  return code == kExitOk ? kExitOutput : code;
}

}  // namespace headgate::app
