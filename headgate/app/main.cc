#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "headgate/app/command_line.h"
#include "headgate/app/process_start.h"

int main(int argc, char** argv) {
  headgate::app::PrepareProcess();
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  const bool color =
      headgate::app::WantsColor(terminal, std::getenv("NO_COLOR"), std::getenv("TERM"));
  headgate::app::Console console{
      .out = std::cout, .err = std::cerr, .color = color, .terminal = terminal};
  if (argc > 0) console.program = argv[0];
  return headgate::app::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), console);
}
