// The conversation of an exchange about one key (key_exchange.h) with its service, in words, for
// its tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/store/cas/key_exchange.h"

namespace headgate::store::cas {

inline constexpr base::Instant kDialogueBegin = base::Instant::FromNanos(1'790'000'000'000'000'000);

// The exchange about a bucket of three requests per hour, and the service, in words.
class KeyDialogue : public ::testing::Test {
 protected:
  KeyDialogue() { exchange_.emplace(writer_); }

  void AskLocked(base::Duration timeout = std::chrono::seconds(5)) {
    const SharedRequest request{.name = "k", .limit = limit_, .locked = true};
    exchange_->Add(
        std::make_unique<WaitingRequest>(request, now_ + timeout, [](const SharedAnswer&) {}));
  }
  void Ask(algorithm::Cost cost = 1, base::Duration timeout = std::chrono::milliseconds(100),
           Operation operation = Operation::kTake) {
    const SharedRequest request{.name = "k", .limit = limit_, .cost = cost, .operation = operation};
    exchange_->Add(
        std::make_unique<WaitingRequest>(request, now_ + timeout, [](const SharedAnswer&) {}));
  }
  // The next action of the exchange. A pause is passed over.
  std::string Next() {
    while (true) {
      action_ = exchange_->Next(now_, kDialogueBegin + (now_ - base::BootTime{0}));
      switch (action_.kind) {
        case ExchangeAction::Kind::kGet:
          return "get";
        case ExchangeAction::Kind::kPut:
          bytes_ = action_.bytes;
          return action_.expected ? fmt::format("put over {}", action_.expected->number)
                                  : "put new";
        case ExchangeAction::Kind::kLock:
          return "lock";
        case ExchangeAction::Kind::kUnlock:
          return "unlock";
        case ExchangeAction::Kind::kWait:
          if (!pauses_pass_ || action_.at.ns == INT64_MAX ||
              action_.at > now_ + std::chrono::milliseconds(50))
            return "wait";
          now_ = action_.at;
      }
    }
  }
  void Got(const std::string& bytes, uint64_t version) {
    exchange_->OnGot(now_, Versioned{.bytes = bytes, .version = {version}});
  }
  void GotNothing() { exchange_->OnGot(now_, std::optional<Versioned>()); }
  void GotError(absl::Status status) { exchange_->OnGot(now_, std::move(status)); }
  void Put(absl::StatusOr<Version> answer) { exchange_->OnPut(now_, answer); }
  void Put(uint64_t version) { exchange_->OnPut(now_, Version{version}); }

  // The answers since the last call: the remaining requests, or the name of an error.
  std::vector<std::string> Answers() {
    std::vector<std::string> answers;
    for (const auto& request : exchange_->TakeAnswered()) {
      const SharedAnswer& answer = request->answer;
      answers.push_back(!answer.status.ok() ? absl::StatusCodeToString(answer.status.code())
                        : answer.decision.allowed
                            ? fmt::format("{} left", answer.decision.remaining)
                            : "denied");
    }
    return answers;
  }
  // The value after another instance has taken one request of it.
  std::string AfterAnother(const std::string& bytes, uint64_t writer = 99) {
    Envelope envelope = bytes.empty() ? Envelope{.generation = 5} : *ParseEnvelope(bytes);
    BucketRound round(envelope.bucket, kDialogueBegin);
    round.Answer({.name = "k", .limit = limit_});
    envelope.bucket = round.bytes();
    AddWrite({.writer = writer, .number = ++others_}, envelope.writes);
    std::string after;
    AppendEnvelope(envelope, after);
    return after;
  }
  // Begins with a bucket of which one request was taken, at version 1.
  void Begin() {
    Ask();
    EXPECT_EQ(Next(), "get");
    GotNothing();
    EXPECT_EQ(Next(), "put new");
    Put(1);
    EXPECT_THAT(Answers(), ::testing::ElementsAre("2 left"));
  }

  LimitTable limits_;
  LimitHandle limit_ =
      *limits_.Intern(*algorithm::Limit::Make({.algorithm = algorithm::Algorithm::kTokenBucket,
                                               .requests = 3,
                                               .period = std::chrono::hours(1)}));
  Writer writer_{.id = 7, .random = base::Random(1)};
  std::optional<KeyExchange> exchange_;
  base::BootTime now_{1'000'000'000};
  ExchangeAction action_;
  std::string bytes_;  // of the last put
  uint64_t others_ = 0;
  bool pauses_pass_ = true;
};

}  // namespace headgate::store::cas
