#include "headgate/store/dynamodb/table_client.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "headgate/store/dynamodb/messages.h"

namespace headgate::store::dynamodb {

void TableClient::Call(std::string_view action, std::string body, base::BootTime deadline,
                       Done done) {
  auto credentials = credentials_.Get();
  if (!credentials.ok()) return done(credentials.status(), false);
  client::http::Request request{
      .fields = {"Content-Type: application/x-amz-json-1.0",
                 fmt::format("X-Amz-Target: DynamoDB_20120810.{}", action)},
      .body = std::move(body)};
  const std::string authority = table_.endpoint.Authority();
  for (std::string& field : SignatureFields({.method = "POST",
                            .authority = authority,
                            .fields = request.fields,
                            .body = request.body,
                            .region = table_.region,
                            .service = "dynamodb"},
                                            **credentials, clock_.WallNow()))
    request.fields.push_back(std::move(field));
  const base::Instant sent =
      dates_.time != nullptr ? dates_.time->OurTime() : base::Instant::FromNanos(0);
  http_.Send(std::move(request), deadline,
             [this, sent, credentials = *std::move(credentials),
              done = std::move(done)](absl::StatusOr<client::http::Answer> answer) {
               if (!answer.ok()) return done(answer.status(), false);
               NoteDate(sent, answer->date);
               if (answer->status == 200) return done(std::move(answer->body), true);
               const Refusal refusal = ParseRefusal(answer->status, answer->body);
               if (refusal.is_about_credentials) credentials_.Refuse(*credentials);
               done(WithAdvice(refusal, *answer), true);
             });
}

void TableClient::NoteDate(base::Instant sent, const std::string& date) const {
  if (dates_.time == nullptr) return;
  const auto alarm = dates_.time->OnAnswer(sent, dates_.time->OurTime(), date);
  if (alarm && dates_.on_alarm) dates_.on_alarm(*alarm);
}

// Requests are not signed with the server's time, because a machine whose clock is wrong by minutes
// must not decide about buckets.
absl::Status TableClient::WithAdvice(const Refusal& refusal,
                                     const client::http::Answer& answer) const {
  if (!refusal.is_about_time) return refusal.status;
  return absl::PermissionDeniedError(fmt::format(
      "{}; DynamoDB's clock says {}; set the clock of this machine",
      std::string(refusal.status.message()), answer.date.empty() ? "another time" : answer.date));
}

}  // namespace headgate::store::dynamodb
