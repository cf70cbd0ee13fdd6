#include "headgate/bench/talk.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "headgate/base/json.h"
#include "headgate/http/http1/client_session.h"
#include "headgate/wire/json.h"
#include "headgate/wire/resp_reader.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::bench {
namespace {

class RespTalk final : public Talk {
 public:
  explicit RespTalk(const TalkOptions& options)
      : limit_({std::to_string(options.burst), std::to_string(options.requests),
                std::to_string(options.seconds)}),
        credential_(options.credential),
        greeted_(credential_.empty()) {}

  void Greet(std::string& output) override {
    if (greeted_) return;
    wire::RespWriter writer(output, wire::RespVersion::k2);
    const std::string_view text = credential_;
    const size_t colon = text.find(':');
    writer.Array(colon == std::string_view::npos ? 2 : 3);
    writer.Bulk("AUTH");
    if (colon != std::string_view::npos) writer.Bulk(text.substr(0, colon));
    writer.Bulk(colon == std::string_view::npos ? text : text.substr(colon + 1));
  }
  bool greeted() const override { return greeted_; }

  void Ask(uint64_t key, std::string& output) override {
    wire::RespWriter writer(output, wire::RespVersion::k2);
    writer.Array(5);
    writer.Bulk("CL.THROTTLE");
    writer.Bulk(fmt::format("bench{}", key));
    for (const std::string& number : limit_) writer.Bulk(number);
  }

  absl::Status Take(std::string_view bytes,
                    const std::function<void(const Answer&)>& on_answer) override {
    while (!bytes.empty()) {
      size_t consumed = 0;
      const wire::RespReader::Step step = reader_.Read(bytes, consumed);
      bytes.remove_prefix(consumed);
      if (step == wire::RespReader::Step::kError)
        return absl::DataLossError("the answer is not of the Redis protocol");
      if (step == wire::RespReader::Step::kIncomplete) return absl::OkStatus();
      const wire::RespValue& value = reader_.value();
      if (!greeted_) {
        if (value.kind == wire::RespValue::Kind::kError)
          return absl::PermissionDeniedError(fmt::format("the login is refused: {}", value.text));
        greeted_ = true;
        reader_ = wire::RespReader();
        continue;
      }
      if (value.kind == wire::RespValue::Kind::kArray && value.items.size() == 5) {
        on_answer(
            {.kind = value.items[0].integer == 0 ? Answer::Kind::kAllowed : Answer::Kind::kDenied});
      } else if (value.kind == wire::RespValue::Kind::kError) {
        const std::string_view text = value.text;
        on_answer({Answer::Kind::kError, text.substr(0, text.find(' ')), text});
      } else {
        on_answer({Answer::Kind::kError, "other", "the answer is not a decision"});
      }
      reader_ = wire::RespReader();
    }
    return absl::OkStatus();
  }

 private:
  const std::array<std::string, 3> limit_;
  const std::string credential_;
  bool greeted_;  // or there is no login
  wire::RespReader reader_;
};

// The first member of every decision.
constexpr std::string_view kDecisionBegins = R"({"allowed":)";

constexpr http::Bounds kAnswerBounds{.body_bytes_max = size_t{16} << 20};

// The words of an answer that is not a decision.
std::string WordsOf(std::string_view body) {
  const wire::Json problem = wire::Json::Parse(body).value_or(nullptr);
  return std::string(problem["detail"].text("the answer is not from Headgate"));
}

class HttpTalk final : public Talk, private http::ResponseReceiver {
 public:
  explicit HttpTalk(const TalkOptions& options) {
    head_.fields.Add("Content-Type", "application/json");
    if (!options.credential.empty())
      head_.fields.Add("Authorization", "Bearer " + options.credential);
    body_begin_ = R"({"domain":)";
    base::AppendJsonString(options.domain, body_begin_);
    body_begin_ += R"(,"descriptors":[{"entries":[{"key":)";
    base::AppendJsonString(options.key, body_begin_);
    body_begin_ += R"(,"value":"bench)";
  }

  void Ask(uint64_t key, std::string& output) override {
    const std::string body = fmt::format("{}{}\"}}]}}]}}", body_begin_, key);
    head_.body = {.kind = http::BodyLength::Kind::kSized, .bytes = body.size()};
    exchange_ = &session_.Begin(head_, *this, {});
    exchange_->SendData(body);
    exchange_->SendEnd({});
    output.append(session_.output());
    session_.output().clear();
  }

  // One request at a time, so nothing follows an answer.
  absl::Status Take(std::string_view bytes,
                    const std::function<void(const Answer&)>& on_answer) override {
    on_answer_ = &on_answer;
    session_.OnBytes(bytes, {});
    if (!failure_.ok() || !session_.finished()) return failure_;
    return absl::UnavailableError("the server closes the connection after an answer");
  }

 private:
  void OnInformational(const http::ResponseHead&, base::Instant) override {}
  void OnHead(http::ResponseHead head, base::Instant) override {
    status_ = head.status;
    body_.clear();
  }
  void OnData(std::string_view bytes, base::Instant) override {
    body_.append(bytes);
    exchange_->Consumed(bytes.size());
  }
  void OnEnd(const http::Fields&, base::Instant) override {
    // A refused login has the status 429 too.
    const bool is_decision = body_.starts_with(kDecisionBegins);
    if (is_decision && status_ == 200) {
      (*on_answer_)({.kind = Answer::Kind::kAllowed});
    } else if (is_decision && status_ == 429) {
      (*on_answer_)({.kind = Answer::Kind::kDenied});
    } else {
      (*on_answer_)({Answer::Kind::kError, std::to_string(status_), WordsOf(body_)});
    }
  }
  void OnFailed(http::Failure, std::string_view detail, base::Instant) override {
    failure_ = absl::DataLossError(fmt::format("the answer is not HTTP: {}", detail));
  }
  void OnWritable(base::Instant) override {}

  http::RequestHead head_{.method = "POST", .target = "/v1/check", .authority = "localhost"};
  std::string body_begin_;
  http::http1::ClientSession session_{kAnswerBounds};
  http::ClientExchange* exchange_ = nullptr;
  const std::function<void(const Answer&)>* on_answer_ = nullptr;
  int status_ = 0;
  std::string body_;
  absl::Status failure_;
};

}  // namespace

std::unique_ptr<Talk> MakeTalk(const TalkOptions& options) {
  if (options.http) return std::make_unique<HttpTalk>(options);
  return std::make_unique<RespTalk>(options);
}

}  // namespace headgate::bench
