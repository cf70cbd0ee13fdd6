// The exchange with the service about one key: rounds of requests, one after the other. Does no
// I/O: it says what to call next, and takes the answers.
//
//   ask, ask                     → get
//   got bytes, version 7         → put bytes, expected 7
//   ask, ask, ask                          (they wait for the next round)
//   put: version 8               → both answered; put bytes, expected 8
//   put: Aborted                 → wait 0.3 ms; get; …
//   put: Unknown                 → wait 0.2 ms; get
//   got our write id             → all three answered
//
// Answers are linearizable. A round that changes the bucket takes effect when its put succeeds,
// which proves that the round had read the current bucket. A round that changes nothing takes
// effect when its get is answered; requests that came after the get was sent wait for the next one.
//
// Locked requests wait until the lock of the key is held (key_locks.h):
//
//   ask locked                   → lock
//   locked, fence 17             → get; put bytes with fence 17; …; answered; unlock
//
// Everything that waits is decided under one lock, at most for lock_hold_max.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"
#include "headgate/base/status.h"
#include "headgate/store/cas/cas_options.h"
#include "headgate/store/cas/envelope.h"
#include "headgate/store/cas/versioned_store.h"
#include "headgate/store/cas/waiting_request.h"

namespace headgate::store::cas {

// The part that all keys of an event loop share.
struct Writer {
  uint64_t id;          // random, no other process has it
  base::Random random;  // for jitter and generations
  uint64_t number = 0;  // of the last write
  CasOptions options{};
  CasCounters counters{};
};

struct ExchangeAction {
  enum class Kind : uint8_t {
    kWait,  // call Next at `at` again, or after the next event
    kGet,
    kPut,
    kLock,    // the next event about the lock is OnLock; other requests are decided meanwhile
    kUnlock,  // gives the lock back, or stops waiting for it; no OnLock for it follows
  };
  Kind kind = Kind::kWait;
  base::BootTime at{0};  // of a call: its deadline
  // The arguments of a put; valid until its answer.
  std::string_view bytes{};
  std::optional<Version> expected{};
  base::Instant expires_at{0};
};

class KeyExchange {
 public:
  using Requests = std::vector<std::unique_ptr<WaitingRequest>>;

  explicit KeyExchange(Writer& writer) : writer_(writer) {}

  void Add(std::unique_ptr<WaitingRequest> request);
  // The next step. `instant` is the time of decisions. Call it after each event, and until it says
  // kWait; after kGet and kPut, the next events are OnGot and OnPut.
  ExchangeAction Next(base::BootTime now, base::Instant instant);
  void OnGot(base::BootTime now, absl::StatusOr<std::optional<Versioned>> answer);
  void OnPut(base::BootTime now, const absl::StatusOr<Version>& answer);
  // The lock was obtained with this fence, cannot be obtained, or was lost.
  void OnLock(base::BootTime now, const absl::StatusOr<uint64_t>& fence);

  // Removes and returns the answered requests; call their `done`.
  Requests TakeAnswered() { return std::exchange(answered_, {}); }

  size_t requests() const { return waiting_.size() + round_.size(); }
  // No request waits, no call is in flight, and no lock is held or waited for.
  bool idle() const {
    return requests() == 0 && in_flight_ == InFlight::kNone && lock_ == Lock::kNone;
  }
  // The bytes of the remembered value; 0 if there is none.
  size_t remembered_bytes() const;
  void Forget() { known_.reset(); }

 private:
  // Whether there is a value that cannot be read.
  bool IsDamaged() const { return known_ && known_->version && !known_->envelope; }
  // Fails all requests except the ones that remove the value.
  void FailOfDamagedValue();

  enum class InFlight : uint8_t { kNone, kGet, kPut };
  enum class Lock : uint8_t {
    kNone,
    kAsked,
    kHeld,
    kStale,  // whether another instance has written under a later lock than the one held here
  };
  // The value as last seen.
  struct Known {
    std::optional<Version> version;    // empty: there is no value
    std::optional<Envelope> envelope;  // empty: there is none, or it is unreadable
    base::BootTime asked_at{0};
  };
  // A put until its outcome is known.
  struct Put {
    WriteId id;
    Known before;
    Envelope envelope;
    std::string bytes;
    bool repeats = false;  // whether an earlier attempt may have been applied
    bool again = false;    // to be sent again
  };

  void Expire(base::BootTime now);
  ExchangeAction Wait(base::BootTime now) const;
  ExchangeAction NextRound(base::BootTime now, base::Instant instant);
  bool MustUnlock(base::BootTime now) const;
  bool IsFenced() const;
  void LeaveLockedRequests();
  ExchangeAction StartGet(base::BootTime now);
  ExchangeAction StartPut(base::BootTime now);
  base::BootTime CallDeadline(base::BootTime now) const;
  bool IsTooOld(base::BootTime now) const;
  void JoinWaiting();
  Changes Decide(base::Instant instant);
  Changes DecidePermits(std::optional<std::string_view> bytes, base::Instant instant);
  void MakePut(std::string bytes, base::Instant expires_at);
  Known KnownOf(std::optional<Versioned> found) const;
  void Resolve(base::BootTime now, Known found);
  void OnRefused(base::BootTime now);
  void Pause(base::BootTime now);
  void CountLoss();
  void AnswerRound();
  void FailRound(const absl::Status& status);
  void Fail(std::unique_ptr<WaitingRequest> request, absl::Status status);

  Writer& writer_;
  Requests waiting_;  // for the next round
  Requests round_;
  Requests answered_;
  InFlight in_flight_ = InFlight::kNone;
  base::BootTime call_sent_at_{0};
  std::optional<Known> known_;
  // Whether `known_` was read for this round.
  bool fresh_ = false;
  std::optional<Put> put_;
  base::BootTime pause_until_{0};
  uint32_t pauses_ = 0;  // in a row
  Lock lock_ = Lock::kNone;
  uint64_t fence_ = 0;  // of the lock that is held
  base::BootTime held_since_{0};
  // The earliest deadline of all requests, or an earlier time.
  base::BootTime earliest_deadline_{INT64_MAX};
};

}  // namespace headgate::store::cas
