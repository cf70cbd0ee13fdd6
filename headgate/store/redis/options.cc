#include "headgate/store/redis/options.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace headgate::store::redis {

std::vector<OptionProblem> RedisOptions::Problems() const {
  using enum BackendOption;
  std::vector<OptionProblem> problems;
  const auto bad = [&](BackendOption option, std::string what) {
    problems.push_back({option, std::move(what)});
  };
  const auto positive = [&](BackendOption option, std::string_view name, base::Duration value) {
    if (value <= base::Duration(0)) bad(option, fmt::format("{} must be more than 0", name));
  };
  const auto at_least_one = [&](BackendOption option, std::string_view name, uint32_t value) {
    if (value == 0) bad(option, fmt::format("{} must be at least 1", name));
  };
  if (servers.empty()) bad(kUrl, "no server is given");
  for (const net::StreamTarget& server : servers) {
    if (server.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      bad(kUrl, fmt::format("the path of the Unix socket has {} bytes; the system takes at most {}",
                            server.unix_path.size(), sizeof(sockaddr_un::sun_path) - 1));
    }
  }
  if (topology == TopologyKind::kSingle && servers.size() > 1) {
    bad(kUrl, "a single store has one server; several are a ring, a cluster or sentinels");
  }
  if (topology == TopologyKind::kCluster && database != 0)
    bad(kUrl, "a cluster has only database 0");
  if (topology == TopologyKind::kSentinel && master_name.empty()) {
    bad(kUrl, "sentinels need the name of the master");
  }
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  if (std::any_of(client_name.begin(), client_name.end(), is_bad)) {
    bad(kUrl, "the client's name must be printable ASCII without spaces");
  }
  if (!user.empty() && password.empty()) bad(kUrl, "a user needs a password");
  if (!sentinel_user.empty() && sentinel_password.empty()) {
    bad(kSentinelUser, "a user of the sentinels needs a password");
  }
  if (topology != TopologyKind::kSentinel && !sentinel_password.empty()) {
    bad(kSentinelPassword, "a login for sentinels is given, but the store does not use sentinels");
  }
  if (tls_files.certificate_file.empty() != tls_files.key_file.empty()) {
    bad(tls_files.key_file.empty() ? kCertificateFile : kKeyFile,
        "a client certificate needs its key and a key its certificate; give both");
  }
  positive(kTimeout, "timeout", timeout);
  positive(kConnectTimeout, "connect_timeout", connect_timeout);
  positive(kUrl, "reply_overdue", reply_overdue);
  positive(kUrl, "reconnect_min", reconnect_min);
  if (reconnect_max < reconnect_min) bad(kUrl, "reconnect_max is less than reconnect_min");
  CheckBreaker(breaker, problems);
  at_least_one(kConnections, "connections_per_server", connections_per_server);
  at_least_one(kInFlightMax, "in_flight_max", in_flight_max);
  return problems;
}

}  // namespace headgate::store::redis
