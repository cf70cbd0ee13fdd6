// Whether a client's request passes. The sidecar answers this by a pool that its clients share
// (pool_admission.h); tests by a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::proxy {

struct AdmissionVerdict {
  bool admitted = true;
  // The client's share, for the RateLimit fields: requests per cycle, and the rest of them. Without
  // a limit there are no such fields.
  bool has_limit = true;
  uint64_t quota = 0;
  uint64_t remaining = 0;
  base::Duration reset_after{0};  // until the share is renewed
  // If it was not admitted: the shortest wait after which the request can pass. Absent: it never
  // can.
  std::optional<base::Duration> retry_after{};
  // If it was not admitted: one sentence for people. Must have static lifetime.
  std::string_view reason{};
  // The request was not admitted because it names no client.
  bool names_no_client = false;
  // Passthrough: it would have been refused otherwise.
  bool counted_only = false;
  // The number of the admitted request, for Admission::OnLeft.
  uint64_t number = 0;
  // If not 0, the request is not decided yet: ask again soon, with this ticket.
  uint64_t ticket = 0;
};

// The question of a request to the pool.
struct Asking {
  uint64_t ticket = 0;   // of the last verdict; 0 at first
  bool is_last = false;  // it does not ask again
};

// How a request left the upstream.
enum class Left : uint8_t {
  kAnswered,  // the head of an answer has arrived
  kFailed,    // the upstream failed, was too slow, or answered 502, 503 or 504
  kUnasked,   // for reasons that say nothing about the upstream: the client has gone, for example
};

struct Leaving {
  uint64_t number = 0;  // of the verdict
  Left how = Left::kUnasked;
  // If false, nothing of the request has reached the upstream, and its cost goes back to the
  // client.
  bool was_sent = true;
  base::Instant sent_at{0};  // when it was sent, or admitted if it was not
};

// Called by all loops.
class Admission {
 public:
  virtual ~Admission() = default;
  // `client` is empty if the request names no client.
  virtual AdmissionVerdict Admit(std::string_view client, base::Instant now) = 0;
  // The same for a request that can wait: the verdict may have a ticket.
  virtual AdmissionVerdict Ask(std::string_view client, Asking /*asking*/, base::Instant now) {
    return Admit(client, now);
  }
  // A peek: whether there is room for the client. If false, Admit may still admit the request in
  // another way.
  virtual bool SeesRoom(std::string_view /*client*/, base::Instant /*now*/) { return true; }
  // False in passthrough: every request passes, and refusals are only counted.
  virtual bool refuses() const { return true; }
  // Lets a request pass in passthrough that a rule would have refused. It does not count as demand,
  // and takes nothing. Returns its number; OnLeft follows.
  virtual uint64_t LetThrough(base::Instant /*now*/) { return 0; }
  // Exactly once for each admitted request.
  virtual void OnLeft(const Leaving& leaving, base::Instant now) = 0;
};

}  // namespace headgate::proxy
