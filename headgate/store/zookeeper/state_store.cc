#include "headgate/store/zookeeper/state_store.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace headgate::store::zookeeper {

using absl::Status;
using base::BootTime;
using client::zookeeper::Client;
using client::zookeeper::Created;
using client::zookeeper::CreateMode;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;

namespace {

// If a breaker waits for this long for a call that can be its probe, a call is made for it.
constexpr base::Duration kProbeIdle = std::chrono::milliseconds(100);
constexpr base::Duration kProbeTimeout = std::chrono::seconds(1);

// ZooKeeper's outcome of a write, as the compare-and-set store knows it.
Status OutcomeOf(const Status& status) {
  if (absl::IsNotFound(status) || absl::IsAlreadyExists(status))
    return absl::AbortedError(status.message());
  if (absl::IsInvalidArgument(status)) return absl::OutOfRangeError(status.message());
  return status;
}

// Whether the status is an answer of the ensemble, of any kind.
bool IsAnswer(const Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsUnknown(status) &&
         !absl::IsDeadlineExceeded(status);
}

}  // namespace

StateStore::StateStore(Client& client, net::EventLoop& loop, StateStoreOptions options,
                       LoopStoreCounters& counters)
    : client_(client),
      loop_(loop),
      options_(std::move(options)),
      nodes_(options_.root),
      counters_(counters),
      breaker_(options_.breaker, options_.seed),
      deadline_timer_(loop, [this] { OnDeadline(); }),
      probe_timer_(loop, [this] { Probe(); }) {}

void StateStore::Get(std::string_view name, BootTime deadline, GetDone done) {
  const auto number = Begin(deadline, [done](const Status& why) { done(why); });
  if (!number.ok()) return done(number.status());
  const std::string path = nodes_.PathOf(name);
  // The Sync is answered before the read, because a session answers in order.
  auto synced = std::make_shared<Status>();
  client_.Sync(path, [synced](const Status& status) { *synced = status; });
  client_.Get(
      path, Watch::kNo,
      [this, number = *number, synced, done = std::move(done)](absl::StatusOr<Node> node) {
        const Status& status = synced->ok() ? node.status() : *synced;
        if (!End(number, status)) return;
        if (absl::IsNotFound(status)) return done(std::nullopt);
        if (!status.ok()) return done(status);
        done(cas::Versioned{.bytes = std::move(node->data), .version = VersionOf(node->stat)});
      });
}

void StateStore::Put(const cas::PutRequest& request, PutDone done) {
  const auto number = Begin(request.deadline, [done](const Status& why) { done(why); });
  if (!number.ok()) return done(number.status());
  const std::string path = nodes_.PathOf(request.name);
  if (!request.bytes) return Delete(*number, path, *request.expected, std::move(done));
  if (!request.expected)
    return Make(*number, path, std::make_shared<const std::string>(*request.bytes), true,
                std::move(done));
  if (NodeVersionOf(*request.expected) < options_.version_max &&
      NodeVersionOf(*request.expected) >= 0)
    return Set(*number, path, *request.bytes, *request.expected, std::move(done));
  Renew(*number, path, *request.bytes, *request.expected, std::move(done));
}

void StateStore::Make(uint64_t number, const std::string& path,
                      std::shared_ptr<const std::string> bytes, bool may_make_shard, PutDone done) {
  client_.Create(path, *bytes, CreateMode::kPersistent,
                 [this, number, path, may_make_shard, bytes,
                  done = std::move(done)](const absl::StatusOr<Created>& made) {
                   if (!absl::IsNotFound(made.status()) || !may_make_shard) {
                     if (!End(number, made.status())) return;
                     if (!made.ok()) return done(OutcomeOf(made.status()));
                     return done(VersionOf(made->stat));
                   }
                   client_.CreateAll(path.substr(0, path.rfind('/')), [this, number, path, bytes,
                                                                       done](const Status& status) {
                     const bool in_time = calls_.contains(number);
                     if (status.ok() && in_time) return Make(number, path, bytes, false, done);
                     // Only the directory could not be made, so nothing was written to the bucket.
                     const Status why =
                         IsAnswer(status) ? status : absl::UnavailableError(status.message());
                     if (End(number, why)) done(why);
                   });
                 });
}

void StateStore::Set(uint64_t number, const std::string& path, std::string_view bytes,
                     cas::Version expected, PutDone done) {
  client_.Set(
      path, bytes, NodeVersionOf(expected),
      [this, number, path, expected, done = std::move(done)](const absl::StatusOr<NodeStat>& stat) {
        if (stat.ok() && !IsSameNode(VersionOf(*stat), expected))
          Alarm(path + ": a value that was removed and made again was replaced");
        if (!End(number, stat.status())) return;
        if (!stat.ok()) return done(OutcomeOf(stat.status()));
        done(VersionOf(*stat));
      });
}

void StateStore::Renew(uint64_t number, const std::string& path, std::string_view bytes,
                       cas::Version expected, PutDone done) {
  auto renewed = std::make_shared<Status>();
  client_.Replace(path, bytes, NodeVersionOf(expected),
                  [renewed](const Status& status) { *renewed = status; });
  // Asks for the new node's version. This call is answered after the creation.
  client_.Exists(
      path, Watch::kNo,
      [this, number, renewed, done = std::move(done)](const absl::StatusOr<NodeStat>& stat) {
        if (!End(number, *renewed)) return;
        if (!renewed->ok()) return done(OutcomeOf(*renewed));
        // If another instance has written since, the version is not known.
        if (!stat.ok() || stat->version != 0)
          return done(absl::UnknownError("the version after the write is not known"));
        done(VersionOf(*stat));
      });
}

void StateStore::Delete(uint64_t number, const std::string& path, cas::Version expected,
                        PutDone done) {
  client_.Delete(path, NodeVersionOf(expected),
                 [this, number, done = std::move(done)](const Status& status) {
                   if (!End(number, status)) return;
                   if (!status.ok()) return done(OutcomeOf(status));
                   done(cas::Version{});
                 });
}

absl::StatusOr<uint64_t> StateStore::Begin(BootTime deadline,
                                           std::function<void(const Status& why)> fail) {
  if (in_flight_ >= options_.in_flight_max) {
    counters_.calls_refused.Add();
    return absl::ResourceExhaustedError("too many calls to ZooKeeper are in flight; not sent");
  }
  const BootTime now = loop_.Now();
  const Breaker::Pass pass = breaker_.Ask(now);
  if (pass == Breaker::Pass::kRefused) {
    counters_.calls_unavailable.Add();
    return absl::UnavailableError("ZooKeeper has failed, and its breaker is open; not sent");
  }
  const uint64_t number = ++last_number_;
  calls_.emplace(number,
                 Call{.pass = pass, .sent = now, .deadline = deadline, .fail = std::move(fail)});
  deadlines_.emplace(deadline, number);
  ++in_flight_;
  SetTimer();
  return number;
}

bool StateStore::End(uint64_t number, const Status& outcome) {
  --in_flight_;
  const auto call = calls_.extract(number);
  if (call.empty()) {
    counters_.late_replies.Add();
    if (IsAnswer(outcome)) breaker_.OnLateAnswer(loop_.Now());
    return false;
  }
  deadlines_.erase({call.mapped().deadline, number});
  Count(outcome, loop_.Now() - call.mapped().sent);
  Finish(call.mapped().pass, outcome);
  if (!was_used_ && (outcome.ok() || absl::IsPermissionDenied(outcome))) {
    was_used_ = outcome.ok();
    if (options_.on_usability) options_.on_usability(outcome);
  }
  return true;
}

void StateStore::OnDeadline() {
  const BootTime now = loop_.Now();
  const Status why = absl::DeadlineExceededError("ZooKeeper has not answered in time");
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto call = calls_.extract(deadlines_.begin()->second);
    deadlines_.erase(deadlines_.begin());
    Count(why, base::Duration(0));
    Finish(call.mapped().pass, why);
    call.mapped().fail(why);
  }
  SetTimer();
}

void StateStore::SetTimer() {
  if (deadlines_.empty()) return deadline_timer_.Cancel();
  deadline_timer_.Set(deadlines_.begin()->first);
}

void StateStore::Count(const Status& outcome, base::Duration took) {
  switch (outcome.code()) {
    case absl::StatusCode::kUnavailable:
      return counters_.calls_unavailable.Add();
    case absl::StatusCode::kDeadlineExceeded:
      return counters_.calls_timed_out.Add();
    case absl::StatusCode::kUnknown:
      return counters_.calls_aborted.Add();
    case absl::StatusCode::kResourceExhausted:
      return counters_.calls_refused.Add();
    case absl::StatusCode::kPermissionDenied:
      counters_.calls_denied.Add();
      if (!std::exchange(denied_, true)) Alarm(std::string(outcome.message()));
      return;
    case absl::StatusCode::kOk:
      denied_ = false;
      [[fallthrough]];
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      counters_.calls_answered.Add();
      return counters_.call_ns.Add(static_cast<uint64_t>(took.count()));
    default:
      return counters_.calls_failed.Add();
  }
}

void StateStore::Finish(Breaker::Pass pass, const Status& outcome) {
  const bool was_closed = breaker_.state() == Breaker::State::kClosed;
  const uint64_t opened = breaker_.opened();
  breaker_.Finish(pass,
                  IsAnswer(outcome)                   ? Breaker::Outcome::kSuccess
                  : absl::IsDeadlineExceeded(outcome) ? Breaker::Outcome::kNoAnswer
                                                      : Breaker::Outcome::kFailure,
                  loop_.Now());
  counters_.breaker_opened.Add(breaker_.opened() - opened);
  const bool closed = breaker_.state() == Breaker::State::kClosed;
  if (!closed) probe_timer_.Set(breaker_.open_until() + kProbeIdle);
  if (closed == was_closed) return;
  if (closed) {
    counters_.breakers_open.Subtract();
    probe_timer_.Cancel();
  } else {
    counters_.breakers_open.Add();
  }
  if (options_.on_breaker) options_.on_breaker(!closed);
}

void StateStore::OnConnected() {
  if (breaker_.state() == Breaker::State::kClosed) return;
  breaker_.ProbeSoon(loop_.Now());
  probe_timer_.SetAfter(base::Duration(0));
}

// Without requests, no call would come to be the breaker's probe.
void StateStore::Probe() {
  if (!breaker_.LacksProbe(base::Duration(0), loop_.Now())) return;
  const auto number = Begin(loop_.Now() + kProbeTimeout, [](const Status& /*why*/) {});
  if (!number.ok()) return probe_timer_.SetAfter(kProbeIdle);
  client_.Exists(options_.root, Watch::kNo,
                 [this, number = *number](const absl::StatusOr<NodeStat>& stat) {
                   End(number, stat.status());
                 });
}

void StateStore::Alarm(const std::string& error) {
  counters_.alarms.Add();
  if (options_.on_alarm) options_.on_alarm(error);
}

}  // namespace headgate::store::zookeeper
