#include "headgate/app/command_line.h"

#include "headgate/app/serve.h"

namespace headgate::app {

int RunCommandLine(const std::vector<std::string>& arguments, const Console& console) {
  if (!arguments.empty() && arguments[0] == "serve") return Serve({arguments.begin() + 1, arguments.end()}, console);
  return kExitUsage;
}

}  // namespace headgate::app
