// Whether an upstream gets requests, judged by how its last exchanges ended. After some failures in
// a row it gets none for a time. If the first exchange afterwards fails too, that time doubles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "headgate/base/time.h"

namespace headgate::proxy {

struct HealthOptions {
  // Failures in a row that put an upstream out. Raise it for upstreams that fail now and then.
  uint32_t failures_max = 5;
  base::Duration out_min = std::chrono::seconds(1);
  base::Duration out_max = std::chrono::seconds(60);
};

class Health {
 public:
  void OnSuccess() {
    failures_ = 0;
    out_for_ = base::Duration(0);
    out_until_.reset();
  }
  void OnFailure(const HealthOptions& options, base::Instant now) {
    if (IsOut(now)) return;  // began before
    ++failures_;
    const bool again = out_for_ > base::Duration(0);
    if (failures_ < options.failures_max && !again) return;
    out_for_ = std::clamp(2 * out_for_, options.out_min, options.out_max);
    out_until_ = now + out_for_;
    failures_ = 0;
  }
  // The upstream was out, and no exchange has succeeded since.
  bool is_suspect() const { return out_for_ > base::Duration(0); }
  bool IsOut(base::Instant now) const { return out_until_ && now < *out_until_; }

 private:
  uint32_t failures_ = 0;  // in a row
  base::Duration out_for_{
      0};  // the length of the last outage, if there was no success since; otherwise 0
  std::optional<base::Instant> out_until_;
};

}  // namespace headgate::proxy
