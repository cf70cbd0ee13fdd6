#include "headgate/store/dynamodb/table_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/store/dynamodb/messages.h"
#include "headgate/wire/json.h"

namespace headgate::store::dynamodb {

using absl::Status;
using wire::Json;

namespace {

constexpr base::Duration kCallTimeout = std::chrono::seconds(10);
constexpr base::Duration kPause = std::chrono::milliseconds(200);

// A list of objects, each as the text of two members: "name HASH, other RANGE".
std::string PairsIn(const Json& list, std::string_view first, std::string_view second) {
  std::string pairs;
  for (const Json& entry : list.items()) {
    pairs += fmt::format("{}{} {}", pairs.empty() ? "" : ", ", entry[first].text(),
                         entry[second].text());
  }
  return pairs;
}

}  // namespace

TableMaker::TableMaker(TableClient& client, net::EventLoop& loop, base::Duration timeout, Done done)
    : client_(client),
      loop_(loop),
      deadline_(loop.Now() + timeout),
      done_(std::move(done)),
      timer_(loop, [this] { Describe(); }) {}

void TableMaker::Call(std::string_view action, std::string body,
                      std::function<void(const absl::StatusOr<std::string>& body)> done) {
  client_.Call(
      action, std::move(body), std::min(deadline_, loop_.Now() + kCallTimeout),
      [done = std::move(done)](const absl::StatusOr<std::string>& answer, bool) { done(answer); });
}

void TableMaker::Describe() {
  Call("DescribeTable", fmt::format(R"({{"TableName":"{}"}})", client_.table().name),
       [this](const absl::StatusOr<std::string>& body) { OnDescribed(body); });
}

void TableMaker::OnDescribed(const absl::StatusOr<std::string>& body) {
  if (absl::IsNotFound(body.status()) && !has_created_) return Create();
  if (body.ok()) {
    const Json answer = Json::Parse(*body).value_or(nullptr);
    const Json& table = answer["Table"];
    const std::string key = PairsIn(table["KeySchema"], "AttributeName", "KeyType");
    const std::string types =
        PairsIn(table["AttributeDefinitions"], "AttributeName", "AttributeType");
    const bool has_type = fmt::format(", {},", types).find(", name S,") != std::string::npos;
    if (key != "name HASH" || !has_type) {
      return Finish(absl::FailedPreconditionError(fmt::format(
          "there is a table {} with another key ({}; types {}): Headgate needs one with the "
          "partition key 'name' of type S and no sort key",
          client_.table().name, key, types)));
    }
    if (table["TableStatus"].text() == "ACTIVE") {
      made_.was_there = made_.was_there || !has_created_;
      return LookAtExpiry();
    }
  } else if (!absl::IsNotFound(body.status()) && !absl::IsResourceExhausted(body.status())) {
    return Finish(body.status());
  }
  if (loop_.Now() + kPause >= deadline_) {
    return Finish(absl::DeadlineExceededError(
        fmt::format("the table {} does not become active", client_.table().name)));
  }
  timer_.SetAfter(kPause);
}

void TableMaker::Create() {
  Call("CreateTable",
       fmt::format(R"({{"TableName":"{}","BillingMode":"PAY_PER_REQUEST",)"
                   R"("AttributeDefinitions":[{{"AttributeName":"{}","AttributeType":"S"}}],)"
                   R"("KeySchema":[{{"AttributeName":"{}","KeyType":"HASH"}}]}})",
                   client_.table().name, kNameAttribute, kNameAttribute),
       [this](const absl::StatusOr<std::string>& body) {
         // Somebody else may create the table at the same time.
         if (!body.ok() && !absl::IsAlreadyExists(body.status())) return Finish(body.status());
         has_created_ = true;
         made_.was_there = !body.ok();
         Describe();
       });
}

void TableMaker::LookAtExpiry() {
  Call("DescribeTimeToLive", fmt::format(R"({{"TableName":"{}"}})", client_.table().name),
       [this](const absl::StatusOr<std::string>& body) {
         if (!body.ok()) return FinishWith(body.status());
         const Json answer = Json::Parse(*body).value_or(nullptr);
         const Json& expiry = answer["TimeToLiveDescription"];
         const std::string_view state = expiry["TimeToLiveStatus"].text();
         const std::string_view attribute = expiry["AttributeName"].text();
         const bool is_on = state == "ENABLED" || state == "ENABLING";
         if (!is_on) return TurnOnExpiry();
         FinishWith(
             attribute == kExpiresAttribute
                 ? absl::OkStatus()
                 : absl::FailedPreconditionError(fmt::format(
                       "it is on for the attribute '{}', not '{}'", attribute, kExpiresAttribute)));
       });
}

void TableMaker::TurnOnExpiry() {
  Call("UpdateTimeToLive",
       fmt::format(R"({{"TableName":"{}","TimeToLiveSpecification":)"
                   R"({{"AttributeName":"{}","Enabled":true}}}})",
                   client_.table().name, kExpiresAttribute),
       [this](const absl::StatusOr<std::string>& body) { FinishWith(body.status()); });
}

void TableMaker::FinishWith(const Status& expiry) {
  if (!expiry.ok()) made_.without_expiry = std::string(expiry.message());
  Finish(made_);
}

void TableMaker::Finish(absl::StatusOr<TableMade> made) {
  // A call that was cut short shows that the time is over, not that DynamoDB failed.
  if (!made.ok() && loop_.Now() >= deadline_) {
    made = absl::DeadlineExceededError(fmt::format("the table {} is not there in time: {}",
                                                   client_.table().name,
                                                   std::string(made.status().message())));
  }
  std::exchange(done_, nullptr)(std::move(made));
}

}  // namespace headgate::store::dynamodb
