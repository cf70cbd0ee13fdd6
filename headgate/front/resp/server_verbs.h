// The commands about the server, with the replies of Redis: INFO, COMMAND, CONFIG GET, TIME,
// DBSIZE, ROLE.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"
#include "headgate/base/time.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// The version of Redis that Headgate reports, for clients that check it before they use a feature.
inline constexpr std::string_view kRedisVersion = "7.2.0";

// The state of the process, over all its loops.
struct ServerFigures {
  base::Duration uptime{0};
  uint64_t memory_bytes = 0;  // resident
  uint64_t connections_open = 0;
  uint64_t connections_max = 0;
  uint64_t connections_accepted = 0;
  uint64_t connections_refused = 0;
  uint64_t commands = 0;  // of this protocol, answered
  uint64_t buckets = 0;   // in this process's memory
};

// Each function answers one command and returns false after an error. Thread-safe if `figures` is.
class ServerVerbs {
 public:
  // Without `figures`, all figures are 0. Without `clock`, TIME is the time of decisions.
  ServerVerbs(std::string_view version, const base::Clock* clock,
              std::function<ServerFigures()> figures)
      : version_(version), clock_(clock), figures_(std::move(figures)) {}

  // A client that may not use state gets only the sections that reveal none.
  bool Info(const wire::RespParser& command, bool may_use_state, wire::RespWriter& reply) const;
  bool Command(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Config(const wire::RespParser& command, wire::RespWriter& reply) const;
  bool Time(wire::RespWriter& reply, base::Instant now) const;
  bool DbSize(wire::RespWriter& reply) const;
  bool Role(wire::RespWriter& reply) const;

 private:
  ServerFigures Figures() const { return figures_ ? figures_() : ServerFigures{}; }

  const std::string version_;
  const base::Clock* const clock_;
  const std::function<ServerFigures()> figures_;
};

}  // namespace headgate::front::resp
