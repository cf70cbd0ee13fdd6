#include "headgate/net/tls_server.h"

#include <openssl/rand.h>

#include "headgate/base/check.h"

namespace headgate::net {

absl::StatusOr<std::shared_ptr<TlsServer>> TlsServer::Load(const TlsServerOptions& options) {
  TlsTicketKeys keys;
  HEADGATE_CHECK(RAND_bytes(keys.data(), static_cast<int>(keys.size())) == 1);
  std::shared_ptr<TlsServer> server(new TlsServer(options, keys));
  HEADGATE_RETURN_IF_ERROR(server->Reload());
  return server;
}

absl::Status TlsServer::Reload() {
  HEADGATE_ASSIGN_OR_RETURN(std::shared_ptr<const TlsContext> loaded,
                            TlsContext::LoadServer(options_, ticket_keys_));
  current_.store(std::move(loaded));
  return absl::OkStatus();
}

}  // namespace headgate::net
