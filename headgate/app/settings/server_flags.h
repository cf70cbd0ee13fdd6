// The flags of commands that ask a running server: its address, TLS, and a login.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/settings/arguments.h"
#include "headgate/app/settings/console.h"
#include "headgate/client/http/ask.h"

namespace headgate::app {

// Hints for a server that refuses the login, and for an address at which no Headgate answers.
inline constexpr std::string_view kLoginHint =
    "log in with --credential-file PATH; its first line is USER:PASSWORD, or the credential";
inline constexpr std::string_view kCertificateHint =
    "name the authority of its certificate with --ca-file, or the name in it with --tls-name";
inline constexpr std::string_view kAnotherProgramHint =
    "another program or a proxy listens there; give Headgate's address with --server";

struct ServerFlags {
  std::optional<std::string> server{};  // HOST:PORT, tls:HOST:PORT or unix:PATH
  std::string credential_file{};
  std::string ca_file{};
  std::string tls_name{};

  std::string address() const { return server.value_or("127.0.0.1:8080"); }
  void AddTo(std::vector<Flag>& flags);
  // The hint for a server that cannot be reached: how to let this user in if the permissions of its
  // socket forbid to connect, `otherwise` for any other cause.
  std::string HintOnUnreachable(std::string_view otherwise) const;
  // The server that they name. Reads the files. Nothing if a flag is wrong; an error with a hint is
  // then on the console.
  std::optional<client::http::ServerAccess> Resolve(const Console& console) const;
};

}  // namespace headgate::app
