#include "headgate/store/dynamodb/state_store.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "headgate/store/dynamodb/instances.h"
#include "headgate/store/dynamodb/messages.h"

namespace headgate::store::dynamodb {

using absl::Status;
using base::BootTime;

namespace {

// An open breaker needs a call as its probe. If no request brings one for this long, a call is made
// for this purpose.
constexpr base::Duration kProbeIdle = std::chrono::milliseconds(100);
constexpr base::Duration kProbeTimeout = std::chrono::seconds(2);

// Whether the call says that nothing can be done with this table, or with these credentials.
bool IsAboutTheTable(const Status& outcome) {
  return absl::IsNotFound(outcome) || absl::IsPermissionDenied(outcome) ||
         absl::IsInvalidArgument(outcome) || absl::IsUnimplemented(outcome);
}

}  // namespace

StateStore::StateStore(TableClient& client, net::EventLoop& loop, StateStoreOptions options,
                       LoopStoreCounters& counters)
    : client_(client),
      loop_(loop),
      options_(std::move(options)),
      counters_(counters),
      breaker_(options_.breaker, options_.seed),
      random_(options_.seed),
      probe_timer_(loop, [this] { Probe(); }),
      check_timer_(loop, [this] { Check(); }) {}

void StateStore::Get(std::string_view name, BootTime deadline, GetDone done) {
  Call("GetItem", GetBody(client_.table().name, KeyOf(name)), deadline,
       [done = std::move(done)](const absl::StatusOr<std::string>& body, bool /*answered*/) {
         if (body.ok()) return done(ParseItem(*body));
         done(body.status());
       });
}

void StateStore::Put(const cas::PutRequest& request, PutDone done) {
  const std::string& table = client_.table().name;
  const std::string key = KeyOf(request.name);
  if (!request.bytes) {
    return Call("DeleteItem", DeleteBody(table, key, *request.expected), request.deadline,
                [done = std::move(done)](const absl::StatusOr<std::string>& body, bool) {
                  if (body.ok()) return done(cas::Version{});
                  done(body.status());
                });
  }
  cas::Version next{.number = random_.Next()};
  while (next.number == 0) next.number = random_.Next();  // 0 stands for an item without a version
  Call("UpdateItem",
       PutBody(table, key, *request.bytes, request.expected, next, request.expires_at),
       request.deadline,
       [next, done = std::move(done)](const absl::StatusOr<std::string>& body, bool) {
         if (body.ok()) return done(next);
         done(body.status());
       });
}

void StateStore::Call(std::string_view action, std::string body, BootTime deadline,
                      TableClient::Done done) {
  const BootTime now = loop_.Now();
  const Breaker::Pass pass = breaker_.Ask(now);
  if (pass == Breaker::Pass::kRefused) {
    counters_.calls_unavailable.Add();
    return done(absl::UnavailableError("DynamoDB has failed, and its breaker is open; not sent"),
                false);
  }
  client_.Call(action, std::move(body), deadline,
               [this, pass, now, done = std::move(done)](const absl::StatusOr<std::string>& answer,
                                                         bool answered) {
                 Finish(pass, now, answer.status(), answered);
                 done(answer, answered);
               });
}

void StateStore::Finish(Breaker::Pass pass, BootTime sent, const Status& outcome, bool answered) {
  Count(outcome, answered, loop_.Now() - sent);
  TellBreaker(pass, outcome, answered);
  NoteUsable(outcome, answered);
}

void StateStore::Count(const Status& outcome, bool answered, base::Duration took) {
  switch (outcome.code()) {
    case absl::StatusCode::kUnavailable:
      return counters_.calls_unavailable.Add();
    case absl::StatusCode::kDeadlineExceeded:
      return counters_.calls_timed_out.Add();
    case absl::StatusCode::kUnknown:
      return counters_.calls_aborted.Add();
    case absl::StatusCode::kResourceExhausted:
      return (answered ? counters_.calls_throttled : counters_.calls_refused).Add();
    case absl::StatusCode::kPermissionDenied:
      return counters_.calls_denied.Add();
    case absl::StatusCode::kOk:
    case absl::StatusCode::kAborted:
      counters_.calls_answered.Add();
      return counters_.call_ns.Add(static_cast<uint64_t>(took.count()));
    default:
      return counters_.calls_failed.Add();
  }
}

void StateStore::NoteUsable(const Status& outcome, bool answered) {
  // A call without an answer does not show that the settings are wrong; the breaker reports it.
  const bool is_about_credentials = !answered && !outcome.ok() && !was_usable_;
  if (outcome.ok() || absl::IsAborted(outcome)) {
    was_usable_ = true;
    check_timer_.Cancel();
  } else if (!IsAboutTheTable(outcome) && !is_about_credentials) {
    return;
  }
  Status state = absl::IsAborted(outcome) ? absl::OkStatus() : outcome;
  if (absl::IsNotFound(state)) {
    state = absl::NotFoundError(
        fmt::format("there is no table {} in {}; `headgate store create-table '{}'` makes it",
                    client_.table().name, client_.table().region, NameOf(client_.table())));
  }
  if (std::exchange(usable_, state) != state && options_.on_usable) options_.on_usable(state);
}

void StateStore::TellBreaker(Breaker::Pass pass, const Status& outcome, bool answered) {
  const bool was_closed = breaker_.state() == Breaker::State::kClosed;
  const uint64_t opened = breaker_.opened();
  // After an internal failure of the service, the next call may succeed.
  const bool failed = absl::IsUnknown(outcome) || (!answered && !outcome.ok());
  const bool says_nothing = !answered && absl::IsResourceExhausted(outcome);
  breaker_.Finish(pass,
                  says_nothing                        ? Breaker::Outcome::kNeither
                  : absl::IsDeadlineExceeded(outcome) ? Breaker::Outcome::kNoAnswer
                  : failed                            ? Breaker::Outcome::kFailure
                                                      : Breaker::Outcome::kSuccess,
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

void StateStore::Check() {
  if (was_usable_) return;
  // Only one such call is sent at a time, so that an old answer never follows a new one.
  Call("GetItem", GetBody(client_.table().name, kInstancesKey), loop_.Now() + kProbeTimeout,
       [this](const absl::StatusOr<std::string>& /*body*/, bool /*answered*/) {
         if (!was_usable_) check_timer_.SetAfter(options_.check_pause);
       });
}

// Without requests, no call would come to be the breaker's probe.
void StateStore::Probe() {
  if (!breaker_.LacksProbe(base::Duration(0), loop_.Now())) return;
  Call("GetItem", GetBody(client_.table().name, kInstancesKey), loop_.Now() + kProbeTimeout,
       [](const absl::StatusOr<std::string>& /*body*/, bool /*answered*/) {});
}

}  // namespace headgate::store::dynamodb
