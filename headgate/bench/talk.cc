#include "headgate/bench/talk.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "headgate/base/json.h"
#include "headgate/http/client.h"
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

// The words of an answer that is not a decision.
std::string WordsOf(const http::Reply& reply) {
  const wire::Json problem = wire::Json::Parse(reply.body).value_or(nullptr);
  return std::string(problem["detail"].text("the answer is not from Headgate"));
}

class HttpTalk final : public Talk {
 public:
  explicit HttpTalk(const TalkOptions& options) {
    if (!options.credential.empty())
      authorization_ = fmt::format("Authorization: Bearer {}\r\n", options.credential);
    body_begin_ = R"({"domain":)";
    base::AppendJsonString(options.domain, body_begin_);
    body_begin_ += R"(,"descriptors":[{"entries":[{"key":)";
    base::AppendJsonString(options.key, body_begin_);
    body_begin_ += R"(,"value":"bench)";
  }

  void Ask(uint64_t key, std::string& output) override {
    const std::string body = fmt::format("{}{}\"}}]}}]}}", body_begin_, key);
    fmt::format_to(std::back_inserter(output),
                   "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                   "application/json\r\n{}Content-Length: {}\r\n\r\n{}",
                   authorization_, body.size(), body);
  }

  // One request at a time, so nothing follows an answer.
  absl::Status Take(std::string_view bytes,
                    const std::function<void(const Answer&)>& on_answer) override {
    const absl::Status status = parser_->Take(bytes);
    if (!status.ok() || !parser_->done()) return status;
    const http::Reply reply = parser_->TakeReply();
    parser_.emplace();
    // A refused login has the status 429 too.
    const bool is_decision = reply.body.starts_with(kDecisionBegins);
    if (is_decision && reply.status == 200) {
      on_answer({.kind = Answer::Kind::kAllowed});
    } else if (is_decision && reply.status == 429) {
      on_answer({.kind = Answer::Kind::kDenied});
    } else {
      on_answer({Answer::Kind::kError, std::to_string(reply.status), WordsOf(reply)});
    }
    return absl::OkStatus();
  }

 private:
  std::string authorization_;
  std::string body_begin_;
  std::optional<http::ReplyParser> parser_{std::in_place};
};

}  // namespace

std::unique_ptr<Talk> MakeTalk(const TalkOptions& options) {
  if (options.http) return std::make_unique<HttpTalk>(options);
  return std::make_unique<RespTalk>(options);
}

}  // namespace headgate::bench
