// A request to a Checker, and a copy of one that outlives its texts.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/rule/descriptor.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

using store::Operation;

// Clients retry and hedge within seconds.
inline constexpr base::Duration kIdRemembered = std::chrono::minutes(10);

// Makes a repeated request count once, also if another instance of a fleet gets the repetition. The
// first request that passes is remembered; a later one with the same id passes and takes nothing. A
// request with an id takes from all of its descriptors, or from none.
//
// A refund with an id is executed at most once: the id is used up before anything is refunded.
struct Once {
  std::string_view id{};     // in its domain; empty: the request has none
  base::Duration window{0};  // how long it is remembered; at least 1 s if there is an id
};

struct Request {
  std::string_view domain;
  std::span<const rule::Descriptor> descriptors;
  // kPeek: the answer of kTake, without consuming; a descriptor without a cost is peeked at with
  // cost 0. kRefund: gives the costs back, at most what is consumed, and answers with the new rest.
  // kReset: makes the buckets as if never used. kCharge: takes the costs, whether or not they fit.
  // kUndo: gives the costs back, as `undone` says.
  Operation operation = Operation::kTake;
  // A take of which a part is undone.
  struct Undone {
    base::Instant taken_at{0};  // Response::taken_at of the take
    algorithm::Cost kept = 0;   // the part that stays taken
  };
  std::span<const Undone> undone{};  // of kUndo: one per descriptor, in order
  Once once{};                       // only for kTake and kRefund
  // The size of the request's body, if it is known: a cost by size takes it, and not the reserve.
  std::optional<uint64_t> request_bytes{};
  // For rules that limit concurrency. If set, a request to pass takes one permit for each of them,
  // whatever its cost, before it takes from any bucket, and the hold keeps the permits. If null,
  // such rules are only looked at: they deny if as many requests are in flight as may be.
  PermitHold* permits = nullptr;
  // Rules that limit concurrency are left out; for requests whose permits are held elsewhere, or
  // that settle what has already passed.
  bool skips_permits = false;
  // The answer says what was taken (Response::took), and an id remembers it for later requests.
  bool tells_takes = false;
  // If the request has to wait for its answer, it may not be sent after all: Response::sized then
  // has all that was taken, so that it can be given back.
  bool may_stay_unsent = false;
  // A kPeek with this asks for the cost of a take if a descriptor states none.
  bool peeks_as_take = false;
};

// A copy of a request, with its own texts. The permit hold stays the caller's.
class KeptRequest {
 public:
  KeptRequest() = default;
  explicit KeptRequest(const Request& request) { Keep(request); }
  KeptRequest(const KeptRequest&) = delete;
  KeptRequest& operator=(const KeptRequest&) = delete;

  // `request` may have texts of this copy.
  void Keep(const Request& request);
  const Request& get() const { return request_; }
  // The size of its texts, entries and descriptors.
  size_t bytes() const;

 private:
  Request request_{};
  std::vector<char> texts_;
  std::vector<rule::Entry> entries_;
  std::vector<rule::Descriptor> descriptors_;
  std::vector<Request::Undone> undone_;
};

}  // namespace headgate::limiter
