#include "headgate/front/api/reserve_handler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/json.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"
#include "headgate/front/api/check_answer.h"
#include "headgate/front/api/reservation.h"
#include "headgate/front/api/reserved_buckets.h"
#include "headgate/http/problem.h"
#include "headgate/wire/digest.h"
#include "headgate/wire/json.h"

namespace headgate::front::api {
namespace {

using limiter::Operation;
using wire::Json;

constexpr base::Duration kExpiresDefault = std::chrono::minutes(10);
// A settlement is remembered for this long, so that no reservation is settled twice.
constexpr base::Duration kSettledRemembered = kReservationExpiresMax;
// The id of a reservation is remembered until every settlement of it is forgotten. Otherwise a new
// reservation with the same id would count as settled.
constexpr base::Duration kReservedRemembered = kReservationExpiresMax + kSettledRemembered;
// Different requests may have the same id.
constexpr std::string_view kReservation = "reserve|";
constexpr std::string_view kSettlement = "settle|";
constexpr std::string_view kSettlementForm = R"(send {"reservation": "…", "cost": 123})";

std::string RandomHex() {
  const base::HashSecret random = base::RandomHashSecret();
  std::string hex;
  for (size_t i = 0; i < 12; ++i) base::AppendHex(random.bytes[i], hex);
  return hex;
}

// The costs that a settlement states.
struct StatedCosts {
  bool one_for_all = false;  // otherwise one for each descriptor
  std::vector<uint64_t> costs;
};

// Absent if the body does not state costs in one of the two ways.
std::optional<StatedCosts> CostsIn(const Json& body) {
  const auto is_cost = [](const Json& value) {
    constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
    return value.is_whole() && value.whole() >= 0 && value.count() <= kMax;
  };
  const Json* const one = body.Find("cost");
  const Json* const each = body.Find("costs");
  if ((one == nullptr) == (each == nullptr)) return std::nullopt;
  if (one != nullptr) {
    if (!is_cost(*one)) return std::nullopt;
    return StatedCosts{.one_for_all = true, .costs = {one->count()}};
  }
  if (each->items().empty() || !std::ranges::all_of(each->items(), is_cost)) return std::nullopt;
  StatedCosts stated;
  for (const Json& cost : each->items()) stated.costs.push_back(cost.count());
  return stated;
}

}  // namespace

// A reservation that may wait for the shared store.
struct ReserveHandler::Reserving {
  explicit Reserving(http::Suspension* suspension)
      : question([suspension] { suspension->wake(); }) {}

  limiter::Question question;
  std::string id;
  std::string once;  // the id of the request to the limiter
  base::Duration expires{0};
  std::vector<FoundBuckets> found;
};

// A settlement in progress. Its steps are done one after the other, and each may
// wait for the store.
struct ReserveHandler::Settling {
  enum class Step : uint8_t {
    kUseUp,   // uses up the reservation's id
    kUndo,    // gives back the excess of the estimate
    kCharge,  // charges the shortage of the estimate
    kPeek,    // reads the buckets for the answer
    kDone,
  };

  explicit Settling(http::Suspension* suspension)
      : question([suspension] { suspension->wake(); }) {}

  limiter::Question question;
  Step step = Step::kUseUp;
  bool opened = false;
  std::string check;  // the body of the check that was reserved
  std::string once;   // the id of the settlement
  Reservation reservation;
  std::vector<uint64_t> reserved;  // as estimated
  std::vector<uint64_t> used;
  std::vector<uint64_t> back;  // by descriptor: the amount that is given back
  // By descriptor: the amount that was not charged, because the store did not answer.
  std::vector<uint64_t> lacking;
};

ReserveHandler::ReserveHandler(limiter::Checker& checker, answer::LimitAnswer& answer,
                               std::string secret)
    : checker_(checker), answer_(answer), secret_(std::move(secret)), id_begin_(RandomHex()) {}

std::string_view ReserveHandler::secret() const {
  if (!secret_.empty()) return secret_;
  const auto& bytes = checker_.hash_secret().bytes;
  return {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

// A snapshot keeps the secret of a store together with its buckets.
uint64_t ReserveHandler::Place() const {
  if (checker_.may_wait()) return 0;
  const auto& bytes = checker_.hash_secret().bytes;
  const std::string_view key(static_cast<const char*>(static_cast<const void*>(bytes.data())),
                             bytes.size());
  const wire::Mac mac = wire::HmacSha256(key, "the place of reservations");
  uint64_t place = 0;
  std::memcpy(&place, mac.data(), sizeof place);
  return std::max<uint64_t>(place, 1);
}

void ReserveHandler::Reserve(const http::Request& request, http::Response& response,
                             base::Instant now) {
  if (!checker_.may_wait()) {
    Reserving reserving(nullptr);
    if (!Begin(request, reserving, response, now)) return;
    const absl::Status status = checker_.Check(check_, decided_, now);
    return AnswerReserved(check_, reserving, status, response, now);
  }
  HEADGATE_CHECK(request.suspension != nullptr);
  Reserving& reserving = request.suspension->Ensure<Reserving>(request.suspension);
  limiter::Question& question = reserving.question;
  const bool has_waited = question.open();
  if (!has_waited && !Begin(request, reserving, response, now)) return;
  const absl::Status status = has_waited ? checker_.Continue(question, decided_, now)
                                         : checker_.Check(check_, decided_, now, &question);
  response.later = status.ok() && decided_.waiting;
  if (response.later) return;
  AnswerReserved(has_waited ? question.request() : check_, reserving, status, response, now);
}

bool ReserveHandler::Begin(const http::Request& request, Reserving& reserving,
                           http::Response& response, base::Instant now) {
  std::optional<BodyError> error = parser_.Parse(request.body, check_);
  if (!error && parser_.ttl())
    error = BodyError{.detail = "only /v1/acquire takes ttl_ms", .hint = "write expires_ms"};
  if (error) {
    http::AnswerProblem(400, error->detail, error->hint, response);
    return false;
  }
  // A settlement uses its stated cost, even if the rule counts sizes.
  descriptors_.assign(check_.descriptors.begin(), check_.descriptors.end());
  for (rule::Descriptor& descriptor : descriptors_) descriptor.cost = descriptor.cost.value_or(1);
  check_.descriptors = descriptors_;
  // A reservation may be settled once, so it needs an id of its own.
  const bool named = !parser_.id().empty();
  reserving.id = named ? std::string(parser_.id()) : fmt::format("{}-{}", id_begin_, ++ids_given_);
  reserving.expires = parser_.expires().value_or(kExpiresDefault);
  reserving.found = FindBuckets(checker_.published(), check_);
  Reservation reservation{.expiry = now + reserving.expires, .taken_at = now, .place = Place()};
  for (size_t i = 0; i < reserving.found.size(); ++i) {
    reservation.takes.push_back(
        {.cost = *descriptors_[i].cost, .at = base::kInstantMax, .mark = reserving.found[i].mark});
  }
  // At its longest.
  if (!SealReservation(check_, reserving.id, reservation, secret())) {
    http::AnswerProblem(
        400, fmt::format("the reservation would be longer than {} bytes", kReservationBytesMax),
        "reserve fewer descriptors at once", response);
    return false;
  }
  check_.operation = Operation::kTake;
  // If the rules change, a retry takes from other buckets, and is another request.
  reserving.once = fmt::format("{}{}|{}", kReservation, check_.once.id, NameOf(reservation.takes));
  if (named) check_.once.id = reserving.once;
  check_.once.window = kReservedRemembered;
  check_.tells_takes = true;
  return true;
}

void ReserveHandler::AnswerReserved(const limiter::Request& check, const Reserving& reserving,
                                    const absl::Status& status, http::Response& response,
                                    base::Instant now) {
  if (!status.ok()) return answer_.AnswerError(status, 503, response);
  base::Duration left = reserving.expires;
  Reservation reservation{.expiry = now + left, .taken_at = now, .place = Place()};
  if (decided_.repeated) {
    // The bucket has been refilling since the first request passed, and its time has been running.
    left = std::min(decided_.first_passed_at + reserving.expires - now, reserving.expires);
    if (left <= base::Duration(0)) {
      return http::AnswerProblem(
          410, "the reservation with this id has expired; it stays taken as estimated",
          "reserve with another id", response);
    }
    reservation.taken_at = decided_.first_passed_at;
    reservation.expiry = decided_.first_passed_at + reserving.expires;
  }
  answer::LimitAnswer::AddMode(answer::ModeOf(decided_), response);
  response.status = decided_.allowed ? 200 : 429;
  response.AddField("Content-Type", "application/json");
  response.body.push_back('{');
  AppendAnswerFields(decided_, response.body, HintOnDomain(check, decided_, checker_));
  if (decided_.allowed) {
    reservation.takes = TakesOf(check, reserving.found, decided_);
    const auto token = SealReservation(check, reserving.id, reservation, secret());
    fmt::format_to(std::back_inserter(response.body), R"(,"reservation":"{}","expires_in_ms":{})",
                   token.value(),
                   std::chrono::duration_cast<std::chrono::milliseconds>(left).count());
  }
  response.body.append("}\n");
  if (const auto state = answer_.StateOf(check, 1, decided_, now)) {
    answer_.EmitFields(*state, now, [&](std::string_view name, std::string_view value) {
      response.AddField(name, value);
    });
  }
}

void ReserveHandler::Settle(const http::Request& request, http::Response& response,
                            base::Instant now) {
  if (!checker_.may_wait()) {
    Settling settling(nullptr);
    if (!Open(request.body, settling, now, response)) return;
    if (!DoSteps(settling, now, response)) return;
    return AnswerSettled(settling, response);
  }
  HEADGATE_CHECK(request.suspension != nullptr);
  Settling& settling = request.suspension->Ensure<Settling>(request.suspension);
  if (!settling.opened && !Open(request.body, settling, now, response)) return;
  if (!DoSteps(settling, now, response)) {
    if (!response.later) settling.opened = false;
    return;
  }
  AnswerSettled(settling, response);
  settling.opened = false;
}

bool ReserveHandler::Open(std::string_view body, Settling& settling, base::Instant now,
                          http::Response& response) {
  const auto refuse = [&](int status, std::string_view detail, std::string_view hint) {
    http::AnswerProblem(status, detail, hint, response);
    return false;
  };
  const Json object = Json::Parse(body, Json::kRequestValuesMax).value_or(nullptr);
  if (!object.is_object()) return refuse(400, "the body is not a JSON object", kSettlementForm);
  const Json& token = object["reservation"];
  auto stated = CostsIn(object);
  if (!token.is_string() || !stated || object.members().size() != 2) {
    return refuse(400, "the body has a reservation and its cost, or the costs of its descriptors",
                  kSettlementForm);
  }
  const auto opened = OpenReservation(token.text(), secret());
  if (!opened) {
    return refuse(400, "this is not a reservation of this server",
                  "instances that share a store need the same reservation_secret_file");
  }
  if (opened->reservation.place != Place()) {
    return refuse(400,
                  "the reservation was made by an instance with other buckets, or before a restart "
                  "without a snapshot",
                  "settle it at the instance that made it, or let the instances share a store");
  }
  settling.check = opened->check;
  const bool is_whole = !parser_.Parse(settling.check, check_) &&
                        check_.descriptors.size() == opened->reservation.takes.size();
  if (!is_whole) return refuse(400, "this reservation is too old", "");
  if (now >= opened->reservation.expiry) {
    return refuse(410, "the reservation has expired; it stays taken as estimated",
                  "reserve with a longer expires_ms");
  }
  const size_t count = check_.descriptors.size();
  std::vector<uint64_t>& costs = stated->costs;
  if (stated->one_for_all) costs.resize(count, costs.front());
  if (costs.size() != count) {
    return refuse(400, fmt::format("the reservation has {} descriptors", count),
                  "send one element of costs for each, or cost for all of them");
  }
  settling.step = Settling::Step::kUseUp;
  settling.reservation = opened->reservation;
  settling.once =
      fmt::format("{}{}|{}", kSettlement, check_.once.id, NameOf(settling.reservation.takes));
  settling.used = std::move(costs);
  settling.reserved.clear();
  for (const rule::Descriptor& descriptor : check_.descriptors)
    settling.reserved.push_back(descriptor.cost.value_or(1));
  settling.back.assign(count, 0);
  settling.lacking.assign(count, 0);
  settling.opened = true;
  return true;
}

bool ReserveHandler::Ask(Operation operation, Settling& settling, base::Instant now,
                         http::Response& response) {
  check_.descriptors = descriptors_;
  check_.operation = operation;
  // The settled request has passed already, so its rule's permits do not matter now.
  check_.skips_permits = true;
  check_.once = {};
  check_.undone = undone_;
  if (settling.step == Settling::Step::kUseUp)
    check_.once = {.id = settling.once, .window = kSettledRemembered};
  limiter::Question& question = settling.question;
  const absl::Status status =
      question.open()
          ? checker_.Continue(question, decided_, now)
          : checker_.Check(check_, decided_, now, checker_.may_wait() ? &question : nullptr);
  // Once the reservation's id is used up, the settlement continues even if the store is
  // unreachable, and the answer reports the result.
  if (!status.ok() && settling.step == Settling::Step::kUseUp) {
    answer_.AnswerError(status, 503, response);
    return false;
  }
  if (!status.ok() && !absl::IsUnavailable(status)) {
    // If the rules change meanwhile, this step does nothing.
    decided_.descriptors.assign(check_.descriptors.size(), {});
    for (limiter::DescriptorAnswer& answer : decided_.descriptors)
      answer.outcome = limiter::Outcome::kUnavailable;
  }
  response.later = decided_.waiting;
  return !response.later;
}

bool ReserveHandler::DoSteps(Settling& settling, base::Instant now, http::Response& response) {
  using Step = Settling::Step;
  if (parser_.Parse(settling.check, check_)) return false;
  const std::vector<rule::Descriptor> reserved(check_.descriptors.begin(),
                                               check_.descriptors.end());
  const auto with_costs = [&](const auto& cost_of) {
    descriptors_ = reserved;
    uint64_t sum = 0;
    for (size_t i = 0; i < reserved.size(); ++i) {
      descriptors_[i].cost = cost_of(i);
      sum += std::min<uint64_t>(*descriptors_[i].cost, 1);
    }
    return sum > 0;
  };
  const auto ask = [&](Operation operation) { return Ask(operation, settling, now, response); };
  const auto was_done = [&](size_t i) {
    return decided_.descriptors[i].outcome != limiter::Outcome::kUnavailable;
  };
  const auto above = [](uint64_t a, uint64_t b) { return a > b ? a - b : 0; };
  const auto more = [&](size_t i) { return above(settling.used[i], settling.reserved[i]); };
  std::vector<FoundBuckets> found;
  while (settling.step != Step::kDone) {
    switch (settling.step) {
      case Step::kUseUp:
        with_costs([](size_t) { return uint64_t{0}; });
        if (!ask(Operation::kTake)) return false;
        if (!decided_.remembered) {
          http::AnswerProblem(
              503, "the reservation is not settled: the shared store cannot be reached",
              "settle it again; if that is 409, it stays taken as estimated", response);
          return false;
        }
        if (decided_.repeated) {
          http::AnswerProblem(409, "the reservation has been settled", "", response);
          return false;
        }
        found = FindBuckets(checker_.published(), check_);
        for (size_t i = 0; i < reserved.size(); ++i) {
          const ReservedTake& take = settling.reservation.takes[i];
          settling.back[i] = std::min(above(take.cost, settling.used[i]),
                                      StillTaken(take, found[i], decided_.descriptors[i],
                                                 settling.reservation.taken_at, now));
        }
        settling.step = Step::kUndo;
        break;
      // The store gives back at most the part that the buckets still lack when this call arrives.
      case Step::kUndo:
        if (with_costs([&](size_t i) {
              return settling.back[i] > 0 ? settling.reserved[i] - settling.used[i] : 0;
            })) {
          undone_.clear();
          for (size_t i = 0; i < reserved.size(); ++i) {
            if (settling.back[i] > 0) {
              undone_.push_back(
                  {.taken_at = settling.reservation.takes[i].at, .kept = settling.used[i]});
            }
          }
          // A queue accepts no undo and would refuse the whole request, so its descriptor is left
          // out.
          std::erase_if(descriptors_, [](const auto& descriptor) { return descriptor.cost == 0u; });
          if (!ask(Operation::kUndo)) return false;
          size_t asked = 0;
          for (uint64_t& back : settling.back) {
            if (back > 0 && !was_done(asked++)) back = 0;
          }
        }
        settling.step = Step::kCharge;
        break;
      case Step::kCharge:
        if (with_costs(more)) {
          if (!ask(Operation::kCharge)) return false;
          for (size_t i = 0; i < reserved.size(); ++i) {
            if (!was_done(i)) settling.lacking[i] = more(i);
          }
        }
        settling.step = Step::kPeek;
        break;
      case Step::kPeek:
        with_costs([](size_t) { return uint64_t{0}; });
        if (!ask(Operation::kPeek)) return false;
        settling.step = Step::kDone;
        break;
      case Step::kDone:
        break;
    }
  }
  return true;
}

void ReserveHandler::AnswerSettled(const Settling& settling, http::Response& response) {
  response.AddField("Content-Type", "application/json");
  const auto append = [&](std::string_view name, const std::vector<uint64_t>& costs) {
    response.body.append("\"").append(name).append("\":[");
    for (size_t i = 0; i < costs.size(); ++i) {
      if (i > 0) response.body.push_back(',');
      base::AppendJsonNumber(costs[i], response.body);
    }
    response.body.append("],");
  };
  answer::LimitAnswer::AddMode(answer::ModeOf(decided_), response);
  response.body.push_back('{');
  append("returned", settling.back);
  append("uncovered", settling.lacking);
  AppendAnswerFields(decided_, response.body);
  response.body.append("}\n");
}

}  // namespace headgate::front::api
