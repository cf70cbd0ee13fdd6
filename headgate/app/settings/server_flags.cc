#include "headgate/app/settings/server_flags.h"

#include <string_view>
#include <utility>

#include "headgate/app/settings/listen_address.h"
#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"
#include "headgate/net/tls_context.h"

namespace headgate::app {
void ServerFlags::AddTo(std::vector<Flag>& flags) {
  flags.push_back({"--server", &server});
  flags.push_back({"--credential-file", &credential_file});
  flags.push_back({"--ca-file", &ca_file});
  flags.push_back({"--tls-name", &tls_name});
}

std::string ServerFlags::HintOnUnreachable(std::string_view otherwise) const {
  const auto endpoint = net::ParseEndpoint(address());
  return endpoint.ok() ? files::HintOnServer(*endpoint, otherwise) : std::string(otherwise);
}

std::optional<client::http::ServerAccess> ServerFlags::Resolve(const Console& console) const {
  const auto refuse = [&](const absl::Status& status, std::string_view hint) {
    console.Error(std::string(status.message()), hint);
    return std::nullopt;
  };
  const std::string text = address();
  const bool over_tls = text.starts_with(kTlsAddress);
  const auto endpoint =
      net::ParseEndpoint(over_tls ? std::string_view(text).substr(kTlsAddress.size()) : text);
  if (!endpoint.ok()) {
    return refuse(endpoint.status(),
                  "for example --server 127.0.0.1:8080, tls:127.0.0.1:8443 or unix:PATH");
  }
  client::http::ServerAccess access{.endpoint = *endpoint};
  if (over_tls) {
    const auto tls = net::TlsContext::Load({.ca_file = ca_file});
    if (!tls.ok()) {
      return refuse(tls.status(),
                    files::HintOnFile(ca_file, "--ca-file names the authority of the certificate"));
    }
    access.tls = true;
    access.ca_file = ca_file;
    access.tls_name = tls_name;
  } else if (!ca_file.empty() || !tls_name.empty()) {
    console.Error("--ca-file and --tls-name are for a server with TLS",
                  "write tls: before the address: --server tls:" + text);
    return std::nullopt;
  }
  if (credential_file.empty()) return access;
  auto credential = files::ReadFirstLine(credential_file);
  if (!credential.ok())
    return refuse(
        credential.status(),
        files::HintOnFile(credential_file, "its first line is USER:PASSWORD, or the credential"));
  access.credential = *std::move(credential);
  return access;
}

}  // namespace headgate::app
