// The permits that a request holds while it is in flight, one for each rule that limits
// concurrency. They are given back when the hold ends, exactly once.
//
//   PermitHold hold;
//   checker.Check({.domain = …, .descriptors = …, .permits = &hold}, response, now, pending);
//   if (response.allowed) … the request goes on, and `hold` lives as long as the request …
//   hold.Release(now);   // the response has ended; the destructor does the same
//
// If the request is denied, Check leaves the hold empty. If the request is given up while Check
// waits for the store, the destructor gives back what the store grants later. A permit that nobody
// gives back, because the process was killed, ends after the ttl of its rule. A request that lasts
// longer must renew its permits (the sidecar does). A permit that ends too early does no harm but
// that it does not count any more.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/limiter/observer.h"
#include "headgate/permit/permit.h"

namespace headgate::limiter {

class Decider;
class PermitHold;

// The decider that a hold belongs to. Null once the decider has ended.
struct PermitSource {
  Decider* decider = nullptr;
};

// The receivers of the events of the permits of a rule.
struct PermitWatch {
  const Observers* observers = nullptr;
  uint32_t worker = 0;
  Observers::Numbers series{};

  void operator()(PermitEvent::Kind kind, uint32_t count = 1) const {
    if (observers == nullptr || count == 0) return;
    observers->TellEach(series, [&](Observer& one, uint32_t number) {
      one.OnPermits(worker, {.series = number, .kind = kind, .count = count});
    });
  }
};

// A permit in the shared store, from the call that asks for it on.
struct SharedPermit {
  std::string name;
  enum class Place : uint8_t {
    kAsked,    // not answered yet
    kNowhere,  // refused, or passed without one because the store is unreachable
    kStore,
    kHere,  // in this process, because the store is unreachable
  };
  Place place = Place::kAsked;
  bool given_back = false;
};

struct HeldPermit {
  base::Hash128 key;                       // in this process
  std::shared_ptr<SharedPermit> shared{};  // null without a shared store
  permit::Ask ask{};                       // that acquired it
  PermitWatch watch{};
  bool is_named = false;  // as in its hold
};

// The ids of a checker's requests. Those of different checkers and processes differ, because they
// begin at random.
class PermitIds {
 public:
  permit::Id Next();

 private:
  std::optional<permit::Id> last_;
};

// For one thread: that of its checker.
class PermitHold {
 public:
  PermitHold() = default;
  // For a permit that is released by its id later. `ttl`: at most this long, if the rule allows.
  // `owner`: whether a permit that the id holds already is another request's.
  enum class Owner : uint8_t { kPerhapsOther, kThisRequest };
  explicit PermitHold(const permit::Id& id, base::Duration ttl = permit::kTtlMax,
                      Owner owner = Owner::kPerhapsOther)
      : id_(id), has_id_(true), is_named_(true), owner_(owner), ttl_(ttl) {}
  PermitHold(PermitHold&& other) noexcept;
  PermitHold& operator=(PermitHold&& other) noexcept;
  ~PermitHold() { Release(acquired_at_); }

  bool empty() const { return held_.empty(); }
  // Gives back all permits.
  void Release(base::Instant now);
  // Lets all permits end one ttl from now, for a request that goes on for long. A permit that has
  // ended already is acquired again if there is room.
  void Renew(base::Instant now);
  // The shortest ttl of the permits, in which they must be renewed. None if it is empty.
  std::optional<base::Duration> ttl() const;
  // Leaves the permits to their end, or to a request that releases them by id.
  void Keep();

  const permit::Id& id() const { return id_; }

  // ---- For a Checker and its Decider

  // Its id; if it has none yet, the next one of `ids`.
  const permit::Id& IdFrom(PermitIds& ids);
  // The time for which a rule with this ttl gives a permit.
  base::Duration TtlWithin(base::Duration ttl) const {
    return std::clamp(ttl_, base::Duration(1), ttl);
  }
  // Whether the permits are released by their id.
  bool is_named() const { return is_named_; }
  Owner owner() const { return owner_; }
  // Keeps track of a permit that is acquired, or asked for.
  void Add(HeldPermit held, const std::shared_ptr<PermitSource>& source, base::Instant now);

 private:
  absl::InlinedVector<HeldPermit, 1> held_;
  std::shared_ptr<PermitSource> source_;
  permit::Id id_{};
  bool has_id_ = false;
  bool is_named_ = false;
  Owner owner_ = Owner::kThisRequest;
  base::Duration ttl_ = permit::kTtlMax;
  base::Instant acquired_at_{0};
};

}  // namespace headgate::limiter
