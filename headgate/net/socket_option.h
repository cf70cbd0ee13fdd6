// Options of sockets that may stay as they are if the system does not know them.
#pragma once

#include <sys/socket.h>

namespace headgate::net {

inline void SetOption(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

}  // namespace headgate::net
