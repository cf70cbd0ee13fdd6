// Reads the access logs of web servers and proxies, one request a line:
//
//   10.0.0.7 - - [25/Nov/2026:10:13:55 +0000] "GET /a HTTP/1.1" 200 512 "-" "curl/8.5" "alice"
//   1795601635.123 alice GET /a
//   {"time": "2026-11-25T10:13:55.250Z", "client_id": "alice"}
//
// A line of text consists of words between spaces; a text in "…" or […] is one word. The time is
// the first word that is one: of the Common Log Format, of RFC 3339, or seconds or milliseconds
// since 1970. In a line of JSON it is the member `time`, `timestamp`, `@timestamp`, `ts`,
// `time_iso8601`, `time_local` or `msec`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"

namespace headgate::replay {

// Longer lines are not read.
inline constexpr size_t kLogLineBytesMax = size_t{64} << 10;

struct LoggedRequest {
  base::Instant at;
  std::string_view client;  // valid until the next line is read
};

// The place of the client's id in a line.
struct ClientPlace {
  int word = 1;          // of a text: 1 is the first, -1 the last
  std::string member{};  // of JSON; not empty: lines of text are not read

  // "1", "-1", or the name of a member. InvalidArgument for an empty text and for 0.
  static absl::StatusOr<ClientPlace> Parse(std::string_view text);
};

class AccessLogReader {
 public:
  explicit AccessLogReader(ClientPlace client) : client_(std::move(client)) {}

  // Nothing if the line has no time that can be read, or no client. A client "-" is the empty one.
  std::optional<LoggedRequest> Read(std::string_view line);

 private:
  std::optional<LoggedRequest> ReadJson(std::string_view line);
  std::optional<LoggedRequest> ReadText(std::string_view line);

  const ClientPlace client_;
  std::vector<std::string_view> words_;
  std::string name_;  // of a client in JSON
};

// The three forms of a time that a log has. From the year 1970 to 2200.
std::optional<base::Instant> ParseLogTime(std::string_view text);

}  // namespace headgate::replay
