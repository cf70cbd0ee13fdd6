#include "headgate/store/redis/options.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>

namespace headgate::store::redis {

std::vector<std::string> RedisOptions::Validate() const {
  std::vector<std::string> problems;
  const auto positive = [&](base::Duration value, std::string_view name) {
    if (value <= base::Duration(0)) problems.push_back(fmt::format("{} must be more than 0", name));
  };
  if (servers.empty()) problems.emplace_back("no server is named");
  for (const net::StreamTarget& server : servers) {
    if (server.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      problems.push_back(fmt::format("the path of the Unix socket has {} bytes; the system takes at most {}",
                                     server.unix_path.size(), sizeof(sockaddr_un::sun_path) - 1));
    }
  }
  if (topology == TopologyKind::kSingle && servers.size() > 1) {
    problems.emplace_back("a single store has one server; several are a ring, a cluster or sentinels");
  }
  if (topology == TopologyKind::kCluster && database != 0) {
    problems.emplace_back("a cluster has no database but 0");
  }
  if (topology == TopologyKind::kSentinel && master_name.empty()) {
    problems.emplace_back("sentinels need the name of the master");
  }
  const auto is_bad = [](char c) { return c <= ' ' || c > '~'; };
  if (std::any_of(client_name.begin(), client_name.end(), is_bad)) {
    problems.emplace_back("the client's name must be printable ASCII without spaces");
  }
  if (!user.empty() && password.empty()) problems.emplace_back("a user needs a password");
  if (!sentinel_user.empty() && sentinel_password.empty()) {
    problems.emplace_back("a user of the sentinels needs a password");
  }
  if (topology != TopologyKind::kSentinel && !sentinel_password.empty()) {
    problems.emplace_back("a login to sentinels is given, and the store has none");
  }
  if (tls_files.certificate_file.empty() != tls_files.key_file.empty()) {
    problems.emplace_back("a client certificate needs its key and a key its certificate; give both");
  }
  positive(timeout, "timeout");
  positive(connect_timeout, "connect_timeout");
  positive(reply_overdue, "reply_overdue");
  positive(reconnect_min, "reconnect_min");
  if (reconnect_max < reconnect_min) problems.emplace_back("reconnect_max must not be less than reconnect_min");
  positive(breaker.open_min, "the breaker's open_min");
  positive(breaker.window, "the breaker's window");
  if (breaker.open_max < breaker.open_min) problems.emplace_back("the breaker's open_max is less than its open_min");
  if (breaker.failures_in_row == 0) problems.emplace_back("the breaker's failures_in_row must be at least 1");
  if (connections_per_server == 0) problems.emplace_back("connections_per_server must be at least 1");
  if (in_flight_max == 0) problems.emplace_back("in_flight_max must be at least 1");
  return problems;
}

}  // namespace headgate::store::redis
