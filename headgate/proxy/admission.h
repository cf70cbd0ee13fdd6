// Whether a client's request passes. The sidecar answers this by a pool that its clients share;
// tests by a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::proxy {

struct Verdict {
  bool admitted = true;
  // The client's share, for the RateLimit fields: requests per `window`, and what is left of them.
  uint64_t quota = 0;
  base::Duration window{0};
  uint64_t remaining = 0;
  base::Duration reset_after{0};  // until the share is renewed
  // If it was not admitted: the shortest wait after which the request can pass. Absent: it never
  // can.
  std::optional<base::Duration> retry_after{};
  // If it was not admitted: one sentence for people. Must have static lifetime.
  std::string_view reason{};
};

// Called by all loops.
class Admission {
 public:
  virtual ~Admission() = default;
  // `client` is empty if the request names no client.
  virtual Verdict Admit(std::string_view client, base::Instant now) = 0;
};

}  // namespace headgate::proxy
