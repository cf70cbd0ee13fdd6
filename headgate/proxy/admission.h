// Whether a client's request passes. The sidecar answers this by a pool that its clients share
// (pool_admission.h); tests by a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::proxy {

struct Verdict {
  bool admitted = true;
  // The client's share, for the RateLimit fields: requests per cycle, and what is left of them.
  // Without a limit there are no such fields.
  bool has_limit = true;
  uint64_t quota = 0;
  uint64_t remaining = 0;
  base::Duration reset_after{0};  // until the share is renewed
  // If it was not admitted: the shortest wait after which the request can pass. Absent: it never
  // can.
  std::optional<base::Duration> retry_after{};
  // If it was not admitted: one sentence for people. Must have static lifetime.
  std::string_view reason{};
  // It was not admitted because the request names no client.
  bool names_no_client = false;
  // It was admitted only because every request is to pass, and would have been refused otherwise.
  bool counted_only = false;
  // Not 0: it is not decided yet. Ask again in a moment, with this ticket.
  uint64_t ticket = 0;
};

// How a request asks.
struct Asking {
  uint64_t ticket = 0;   // of the last verdict; 0 at first
  bool is_last = false;  // it does not ask again
};

// How a request left the upstream.
enum class Left : uint8_t {
  kAnswered,  // the head of an answer has arrived
  kFailed,    // the upstream failed, was too slow, or answered 502, 503 or 504
  kUnasked,   // it says nothing about the upstream: the client has gone, for example
};

// Called by all loops.
class Admission {
 public:
  virtual ~Admission() = default;
  // `client` is empty if the request names no client.
  virtual Verdict Admit(std::string_view client, base::Instant now) = 0;
  // The same for a request that can wait: the verdict may have a ticket.
  virtual Verdict Ask(std::string_view client, Asking /*asking*/, base::Instant now) {
    return Admit(client, now);
  }
  // Whether Admit would find room for the client, as far as can be seen without taking it. False
  // promises nothing: Admit may still find a way.
  virtual bool SeesRoom(std::string_view /*client*/, base::Instant /*now*/) { return true; }
  // False if every request is to pass, and refusals are only counted.
  virtual bool refuses() const { return true; }
  // A request passes without being asked about, because a rule has refused it and every request is
  // to pass. It does not count as demand, and takes nothing. OnLeft follows.
  virtual void LetThrough(base::Instant /*now*/) {}
  // Exactly once for each admitted request. It was sent at `sent_at`, or admitted if it was never
  // sent.
  virtual void OnLeft(Left how, base::Instant sent_at, base::Instant now) = 0;
};

}  // namespace headgate::proxy
