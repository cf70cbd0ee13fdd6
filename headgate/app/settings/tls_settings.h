// The certificates of the addresses with TLS, as the settings name them.
#pragma once

#include "headgate/app/settings/configuration.h"
#include "headgate/app/settings/settings.h"
#include "headgate/net/tls_server.h"

namespace headgate::app {

net::TlsServerOptions TlsServerOptionsOf(const Settings& settings);

// Adds the problems of the certificate files to those of the configuration.
void CheckCertificates(Configuration& configuration);

}  // namespace headgate::app
