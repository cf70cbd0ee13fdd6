// The settings of `headgate sidecar`, read from its flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/app/console.h"
#include "headgate/app/listen_address.h"
#include "headgate/app/settings.h"
#include "headgate/app/sidecar_tls.h"
#include "headgate/app/store_settings.h"
#include "headgate/net/connector.h"
#include "headgate/observe/log_line.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/replay/access_log.h"
#include "headgate/share/share_options.h"

namespace headgate::app {

struct UpstreamList {
  std::vector<net::StreamTarget> targets{};
  bool http2 = false;  // without TLS by prior knowledge
  bool tls = false;
  bool SameScheme(const UpstreamList& other) const {
    return http2 == other.http2 && tls == other.tls;
  }
};
// "http://127.0.0.1:9000,127.0.0.1:9001", "h2c://[::1]:9000" or "http://unix:/run/service"; with
// TLS "https://HOST" and "h2://HOST". InvalidArgument says what would be valid.
absl::StatusOr<UpstreamList> ParseUpstreams(std::string_view text);

// "10%" or "2.5%", in steps of a tenth of a percent.
std::optional<algorithm::Ratio> ParsePercentage(std::string_view text);

// An access log that is replayed in place of serving.
struct PlanSettings {
  std::string log;
  replay::ClientPlace client{};
};

struct SidecarSettings {
  std::optional<PlanSettings> plan{};  // if present, only `share` has a meaning
  std::vector<ListenAddress> listen{};
  std::optional<ListenAddress> admin{};  // absent: none
  std::string credential{};
  UpstreamList upstreams{};
  base::Duration connect_timeout{0};
  SidecarTls tls{};
  share::ShareOptions share{};
  proxy::ProxyOptions proxy{};  // without addresses
  // For rules: their sources, the mapping file (`auth`), and the memory of the engine.
  Settings engine{};
  std::optional<StoreSettings> store{};  // that the rules count in; absent: in this process
  base::Duration drain_timeout{0};
  std::string handover{};  // the Unix socket for a successor; empty: none
  uint64_t connections_max = 0;
  uint64_t connections_per_address_max = 0;
  uint32_t threads = 1;
  observe::Level log_level = observe::Level::kInfo;
  observe::LogFormat log_format = observe::LogFormat::kText;

  bool has_rules() const { return !engine.rules.empty() || !engine.rule.empty(); }
};

// Nothing if a flag is wrong; an error with a hint is then on the console.
std::optional<SidecarSettings> ReadSidecarFlags(const std::vector<std::string>& arguments,
                                                const Console& console);

}  // namespace headgate::app
