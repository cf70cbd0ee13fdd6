#include "headgate/app/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace headgate::app {

void PrepareProcess() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // Takes the lowest number that is free, which is this one. Opened the wrong way round, so that
    // reading and writing fail as they do on a closed file.
    [[maybe_unused]] const int held = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace headgate::app
