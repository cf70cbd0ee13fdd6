#include "headgate/net/tls_server.h"

#include <utility>

#include "headgate/base/clock.h"

namespace headgate::net {

TlsServer::TlsServer(TlsServerOptions options)
    : options_(std::move(options)),
      ticket_keys_(std::make_shared<TicketKeys>(base::SystemClock().BootNow())) {}

absl::StatusOr<std::shared_ptr<TlsServer>> TlsServer::Load(const TlsServerOptions& options) {
  std::shared_ptr<TlsServer> server(new TlsServer(options));
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
