// How a session answers: with a complete response, in parts, or with an error.
#include <algorithm>
#include <memory>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/digits.h"
#include "headgate/base/time_of_day.h"
#include "headgate/http/bounds.h"
#include "headgate/http/date.h"
#include "headgate/http/problem.h"
#include "headgate/http/session.h"

namespace headgate::http {
namespace {

// The size line of a chunk. Its digits are filled in when the size is known; leading zeros are
// allowed (RFC 9112, 7.1).
constexpr std::string_view kChunkHead = "00000000\r\n";

void SetChunkSize(size_t size, char* head) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (char* digit = head + kChunkHead.size() - 3; digit >= head; --digit, size >>= 4)
    *digit = kDigits[size & 0xF];
}

// A longer body is sent in parts. The buffer of a connection is bounded, and one that overflows
// closes the connection without an answer.
constexpr size_t kWholeBodyBytesMax = size_t{1} << 20;

class OwnedBody final : public BodySource {
 public:
  explicit OwnedBody(std::string body) : body_(std::move(body)), rest_(body_) {}

  Next Read(size_t bytes_max, std::string& out, base::Instant now) override {
    return rest_.Read(bytes_max, out, now);
  }
  std::optional<uint64_t> size_bytes() const override { return rest_.size_bytes(); }

 private:
  const std::string body_;
  FixedBody rest_;
};

// Whether a response with this status has neither content nor Content-Length.
bool IsBare(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

bool Session::Answer(std::string_view body, std::string& output, base::Instant now) {
  Request& request = parser_.request();
  if (sink_ != nullptr) {
    sink_->Finish(response_, now);
  } else {
    request.body = body;
    handler_.Handle(request, response_, now);
  }
  if (response_.later) {
    held_until_ = response_.held_until;
    response_.Clear();
    await_ = Await::kAnswer;
    return false;
  }
  last_ = last_ || !parser_.keep_alive() || draining_;
  if (response_.stream == nullptr && response_.body.size() > kWholeBodyBytesMax) {
    response_.stream = std::make_unique<OwnedBody>(std::move(response_.body));
    response_.body.clear();
  }
  Write(output, now);
  if (response_.stream == nullptr) {
    EndAnswer();
    return true;
  }
  await_ = Await::kStream;
  streamed_bytes_ = 0;
  return true;
}

bool Session::ContinueStream(std::string& output, base::Instant now) {
  const bool ends = draining_ && response_.stream->endless();
  const size_t size_before = output.size();
  switch (ends ? BodySource::Next::kEnd : AppendPart(output, now)) {
    case BodySource::Next::kMore:
      HEADGATE_CHECK(output.size() > size_before);
      stalled_since_.reset();
      return true;
    case BodySource::Next::kLater:
      if (output.size() > size_before || !stalled_since_) stalled_since_ = now;
      return false;
    case BodySource::Next::kEnd:
      if (chunked_answer_) output.append("0\r\n\r\n");
      EndAnswer();
      return true;
    case BodySource::Next::kBroken:
      break;
  }
  last_ = true;
  EndAnswer();
  return false;
}

// A source that gives more or less than the size it stated counts as broken.
BodySource::Next Session::AppendPart(std::string& output, base::Instant now) {
  const size_t head_at = output.size();
  if (chunked_answer_) output.append(kChunkHead);
  const size_t begin = output.size();
  const BodySource::Next next = response_.stream->Read(kPartBytesMax, output, now);
  const size_t size = output.size() - begin;
  HEADGATE_CHECK(size <= kPartBytesMax);
  streamed_bytes_ += size;
  if (chunked_answer_ && size > 0) {
    SetChunkSize(size, &output[head_at]);
    output.append("\r\n");
  } else if (chunked_answer_) {
    output.resize(head_at);
  }
  const std::optional<uint64_t> stated = response_.stream->size_bytes();
  if (!stated) return next;
  if (streamed_bytes_ > *stated) {
    output.resize(output.size() - static_cast<size_t>(streamed_bytes_ - *stated));
    return BodySource::Next::kBroken;
  }
  return next == BodySource::Next::kEnd && streamed_bytes_ < *stated ? BodySource::Next::kBroken
                                                                     : next;
}

void Session::Refuse(const Refusal& refusal, std::string& output, base::Instant now) {
  last_ = true;
  refused_ = true;
  response_.Clear();
  AnswerProblem(refusal.status, refusal.detail, refusal.hint, response_);
  Write(output, now);
  closing_ = true;
  Forget();
  ShrinkBuffers();
}

void Session::OnGivenUp(GivenUp why, std::string& output, base::Instant now) {
  if (await_ == Await::kStream) return;  // in the middle of an answer
  if (why == GivenUp::kIdle) return;
  if (why == GivenUp::kTooSlow) {
    return Refuse({408, "the request took too long",
                   "send it whole, or raise request_timeout of `headgate serve`"},
                  output, now);
  }
  Refuse({503, "the server's buffers are full of unfinished requests",
          "try again later, send smaller requests, or raise max_buffer_bytes of `headgate serve`"},
         output, now);
}

// Writes the head and the body so far. The way its size is stated determines how a stream
// continues.
void Session::Write(std::string& output, base::Instant now) {
  const bool with_body = parser_.request().method != "HEAD" && !IsBare(response_.status);
  std::optional<uint64_t> size = response_.body.size();
  if (response_.stream != nullptr) {
    size = response_.stream->size_bytes();
    if (size) *size += response_.body.size();
  }
  chunked_answer_ = with_body && !size && parser_.http11();
  // For HTTP/1.0, only the end of the connection marks the end of such a body.
  if (with_body && !size && !chunked_answer_) last_ = true;

  const auto date = Date(base::TimeOfDay(options_.clock, now));
  output.append("HTTP/1.1 ");
  base::AppendNumber(static_cast<uint64_t>(response_.status), output);
  output.append(" ").append(StatusText(response_.status));
  output.append("\r\nDate: ").append(date.data(), date.size()).append("\r\n");
  if (chunked_answer_) {
    output.append("Transfer-Encoding: chunked\r\n");
  } else if (size && !IsBare(response_.status)) {
    output.append("Content-Length: ");
    base::AppendNumber(*size, output);
    output.append("\r\n");
  }
  if (last_) {
    output.append("Connection: close\r\n");
  } else if (!parser_.http11()) {
    output.append("Connection: keep-alive\r\n");
  }
  output.append(response_.fields).append("\r\n");
  if (!with_body) {
    response_.stream.reset();
    return;
  }
  if (chunked_answer_ && !response_.body.empty()) {
    const size_t head_at = output.size();
    output.append(kChunkHead).append(response_.body).append("\r\n");
    SetChunkSize(response_.body.size(), &output[head_at]);
  } else {
    output.append(response_.body);
  }
}

void Session::EndAnswer() {
  ++answered_;
  closing_ = last_;
  Forget();
}

// Prepares for the next request.
void Session::Forget() {
  await_ = Await::kHead;
  parser_.Forget();
  sink_.reset();
  sink_is_busy_ = false;
  stalled_since_.reset();
  head_.clear();
  body_.clear();
  response_.Clear();
}

// At the end of a call and not of an answer, so that the answers of a pipeline share one buffer: a
// large one is mapped when it is allocated, and unmapped when it is freed.
void Session::ShrinkBuffers() {
  if (await_ != Await::kHead) return;
  for (std::string* const buffer : {&head_, &body_, &response_.body}) {
    if (buffer->capacity() > kKeptBytesMax) std::string().swap(*buffer);
  }
}

}  // namespace headgate::http
