#include "headgate/app/console.h"

namespace headgate::app {
namespace {

constexpr std::string_view kRed = "\033[1;31m";
constexpr std::string_view kCyan = "\033[36m";
constexpr std::string_view kPlain = "\033[0m";

}  // namespace

void Console::Error(std::string_view what, std::string_view hint) const {
  const auto word = [&](std::string_view text, std::string_view shade) {
    err << (color ? shade : "") << text << (color ? kPlain : "");
  };
  word("error:", kRed);
  err << ' ' << what << '\n';
  if (!hint.empty()) {
    word("hint:", kCyan);
    err << ' ' << hint << '\n';
  }
}

}  // namespace headgate::app
