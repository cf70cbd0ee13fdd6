#include "headgate/base/host_name.h"

#include <unistd.h>

#include <array>
#include <climits>

namespace headgate::base {

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace headgate::base
