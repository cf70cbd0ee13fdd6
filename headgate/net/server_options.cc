#include "headgate/net/server_options.h"

#include <fmt/format.h>

namespace headgate::net {

std::vector<std::string> ServerOptions::Validate() const {
  std::vector<std::string> problems;
  if (threads < 1 || threads > 1024)
    problems.push_back(fmt::format("threads is {}; it must be 1 to 1024", threads));
  if (connections_max < 1) problems.push_back("connections_max is 0; it must be at least 1");
  const struct {
    const char* name;
    base::Duration value;
  } durations[] = {{"request_timeout", request_timeout},
                   {"idle_timeout", idle_timeout},
                   {"write_timeout", write_timeout},
                   {"linger_timeout", linger_timeout},
                   {"refusal_timeout", refusal_timeout},
                   {"proxy_header_timeout", proxy_header_timeout},
                   {"tick", tick}};
  for (const auto& [name, value] : durations) {
    if (value < std::chrono::milliseconds(1) || value > std::chrono::hours(24 * 365)) {
      problems.push_back(fmt::format("{} must be between 1 ms and a year", name));
    }
  }
  if (output_bytes_max < 4096) problems.push_back("output_bytes_max must be at least 4096");
  if (input_bytes_max < 4096) problems.push_back("input_bytes_max must be at least 4096");
  if (buffer_bytes_max < (size_t{1} << 20))
    problems.push_back("buffer_bytes_max must be at least 1 MiB");
  if (refusals_max < threads) problems.push_back("refusals_max must be at least threads");
  if (proxy_headers_awaited_max < threads)
    problems.push_back("proxy_headers_awaited_max must be at least threads");
  if (backlog < 1) problems.push_back("backlog must be at least 1");
  return problems;
}

}  // namespace headgate::net
