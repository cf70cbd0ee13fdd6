#include "headgate/app/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace headgate::app {

void PrepareProcess() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, which is this stream's. The file is opened for the
    // wrong direction, so that reads and writes fail as on a closed file.
    [[maybe_unused]] const int held = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace headgate::app
