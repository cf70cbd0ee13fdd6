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
  curl::Request request{.fields = {"Content-Type: application/x-amz-json-1.0",
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
  http_.Send(std::move(request), deadline,
             [this, credentials = *std::move(credentials),
              done = std::move(done)](absl::StatusOr<curl::Answer> answer) {
               if (!answer.ok()) return done(answer.status(), false);
               if (answer->status == 200) return done(std::move(answer->body), true);
               const Refusal refusal = ParseRefusal(answer->status, answer->body);
               if (refusal.is_about_credentials) credentials_.Refuse(*credentials);
               done(WithAdvice(refusal, *answer), true);
             });
}

// A clock that is minutes off must not decide about buckets, so the signature is not made for the
// server's time.
absl::Status TableClient::WithAdvice(const Refusal& refusal, const curl::Answer& answer) const {
  if (!refusal.is_about_time) return refusal.status;
  return absl::PermissionDeniedError(fmt::format(
      "{}; DynamoDB's clock says {}; set the clock of this machine",
      std::string(refusal.status.message()), answer.date.empty() ? "another time" : answer.date));
}

}  // namespace headgate::store::dynamodb
