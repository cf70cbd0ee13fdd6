// Calls actions of DynamoDB: signs each request and tells what a refusal means (messages.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/curl/client.h"
#include "headgate/store/dynamodb/credential_source.h"
#include "headgate/store/dynamodb/table_url.h"

namespace headgate::store::dynamodb {

class TableClient {
 public:
  // All must outlive it. `clock` is the time of signatures.
  TableClient(curl::Client& http, const base::Clock& clock, CredentialSource& credentials,
              const Table& table)
      : http_(http), clock_(clock), credentials_(credentials), table_(table) {}
  TableClient(const TableClient&) = delete;

  // The body of the answer, or
  //
  //   the statuses of ParseRefusal        DynamoDB has answered
  //   Unavailable                         not sent: no connection or no credentials
  //   DeadlineExceeded, Unknown           sent, and no answer came
  //   ResourceExhausted                   not sent: too many calls wait
  //
  // Called once, at `deadline` at the latest (plus a tick), possibly from within Call. `answered`
  // is whether DynamoDB has answered.
  using Done = std::function<void(absl::StatusOr<std::string> body, bool answered)>;
  void Call(std::string_view action, std::string body, base::BootTime deadline, Done done);

  const Table& table() const { return table_; }

 private:
  absl::Status WithAdvice(const struct Refusal& refusal, const curl::Answer& answer) const;

  curl::Client& http_;
  const base::Clock& clock_;
  CredentialSource& credentials_;
  const Table table_;
};

}  // namespace headgate::store::dynamodb
