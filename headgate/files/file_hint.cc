#include "headgate/files/file_hint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace headgate::files {
namespace {

// Whether the permissions forbid this user the access `what`.
bool IsForbidden(const std::string& path, int what) {
  return ::faccessat(AT_FDCWD, path.c_str(), what, AT_EACCESS) != 0 &&
         (errno == EACCES || errno == EPERM);
}

}  // namespace

std::string HintOnFile(const std::string& path, std::string_view otherwise) {
  return IsForbidden(path, R_OK) ? "let this user read it" : std::string(otherwise);
}

std::string HintOnServer(const net::Endpoint& server, std::string_view otherwise) {
  if (!server.is_unix() || !IsForbidden(server.address, W_OK)) return std::string(otherwise);
  return fmt::format(
      "let this user write to the socket; `headgate serve --listen 'unix:{}?mode=0660'` lets its "
      "group",
      server.address);
}

}  // namespace headgate::files
