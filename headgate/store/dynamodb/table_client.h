// Calls actions of DynamoDB: signs each request and tells what a refusal means (messages.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/client/http/client.h"
#include "headgate/store/dynamodb/credential_source.h"
#include "headgate/store/dynamodb/server_time.h"
#include "headgate/store/dynamodb/table_url.h"

namespace headgate::store::dynamodb {

// Learns DynamoDB's time from the Date of each answer.
struct DateListener {
  ServerTime* time = nullptr;  // must outlive the client
  std::function<void(const std::string& alarm)> on_alarm{};
};

class TableClient {
 public:
  // All arguments must outlive this object. `clock` is the time of signatures.
  TableClient(client::http::Client& http, const base::Clock& clock, CredentialSource& credentials,
              const Table& table, DateListener dates = {})
      : http_(http),
        clock_(clock),
        credentials_(credentials),
        table_(table),
        dates_(std::move(dates)) {}
  TableClient(const TableClient&) = delete;

  // The body of the answer, or an error:
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
  void NoteDate(base::Instant sent, const std::string& date) const;
  absl::Status WithAdvice(const struct Refusal& refusal, const client::http::Answer& answer) const;

  client::http::Client& http_;
  const base::Clock& clock_;
  CredentialSource& credentials_;
  const Table table_;
  const DateListener dates_;
};

}  // namespace headgate::store::dynamodb
