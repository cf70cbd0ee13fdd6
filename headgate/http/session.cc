#include "headgate/http/session.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iterator>
#include <utility>

#include "headgate/http/problem.h"

namespace headgate::http {
namespace {

// Buffer capacity that a quiet connection keeps after a large request or answer.
constexpr size_t kKeptBytesMax = 4 * 1024;

void WriteDigits(unsigned value, char* out, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

void AppendNumber(uint64_t value, std::string& out) {
  char digits[20];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value);
  out.append(digits, end);
}

void ShrinkTo(size_t bytes_max, std::string& text) {
  text.clear();
  if (text.capacity() > bytes_max) text.shrink_to_fit();
}

// A status whose answer has no content, and no Content-Length either.
bool IsBare(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

std::array<char, 29> Date(base::Instant now) {
  static constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
  static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::chrono::sys_seconds t{std::chrono::floor<std::chrono::seconds>(base::Duration(base::Clamp(now).ns))};
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{t - day};
  std::array<char, 29> out;
  constexpr std::string_view kPattern = "Sun, 00 Jan 0000 00:00:00 GMT";
  static_assert(kPattern.size() == std::tuple_size_v<decltype(out)>);
  std::copy(kPattern.begin(), kPattern.end(), out.begin());
  std::copy_n(kDays.begin() + 3 * std::chrono::weekday{day}.c_encoding(), 3, out.begin());
  WriteDigits(static_cast<unsigned>(date.day()), &out[5], 2);
  std::copy_n(kMonths.begin() + 3 * (static_cast<unsigned>(date.month()) - 1), 3, out.begin() + 8);
  WriteDigits(static_cast<unsigned>(static_cast<int>(date.year())), &out[12], 4);
  WriteDigits(static_cast<unsigned>(time.hours().count()), &out[17], 2);
  WriteDigits(static_cast<unsigned>(time.minutes().count()), &out[20], 2);
  WriteDigits(static_cast<unsigned>(time.seconds().count()), &out[23], 2);
  return out;
}

Session::Session(Handler& handler, const Options& options, net::Peer peer)
    : handler_(handler), options_(options), parser_(options.bounds), chunks_(options.bounds) {
  parser_.request().peer = peer;
  parser_.request().suspension = &suspension_;
}

Session::Progress Session::OnBytes(std::span<const char> input, std::string& output, base::Instant now) {
  std::string_view rest(input.data(), input.size());
  const size_t output_pause = output.size() + kOutputPauseBytes;
  bool more = true;
  while (more && !closing_ && output.size() < output_pause) {
    switch (await_) {
      case Await::kHead:
        more = TakeHead(rest, output, now);
        break;
      case Await::kBody:
        more = TakeBody(rest, output, now);
        break;
      case Await::kChunks:
        more = TakeChunks(rest, output, now);
        break;
      case Await::kAnswer:
        more = Answer(body_, output, now);
        break;
    }
  }
  Progress progress{.answered = std::exchange(answered_, 0)};
  wait_.Report(await_ == Await::kAnswer, now, progress);
  progress.protocol_error = refused_;
  progress.close = closing_;
  progress.consumed = closing_ ? input.size() : input.size() - rest.size();
  progress.mid_request = !rest.empty() || await_ != Await::kHead;
  progress.more = more && !rest.empty();
  return progress;
}

bool Session::TakeHead(std::string_view& rest, std::string& output, base::Instant now) {
  if (!scan_.begun()) {
    while (rest.starts_with("\r\n")) rest.remove_prefix(2);  // RFC 9112, 2.2: before a request line they are nothing
  }
  const auto [head_size, violation] = scan_.Continue(rest, options_.bounds);
  if (violation) {
    Refuse(violation, output, now);
    return false;
  }
  if (head_size == 0) return false;

  const std::string_view head = rest.substr(0, head_size);
  if (const Refusal refusal = parser_.ParseHead(head)) {
    Refuse(refusal, output, now);
    return false;
  }
  if (parser_.names_host() && !options_.hosts.Knows(parser_.host())) {
    Refuse({421, "this server does not go by the name in Host",
            "ask by address, as localhost, or start the server with --known-host NAME"},
           output, now);
    return false;
  }
  rest.remove_prefix(head_size);

  const uint64_t length = parser_.content_length();
  if (!parser_.chunked() && length <= rest.size()) {
    const std::string_view body = rest.substr(0, length);
    rest.remove_prefix(length);
    if (Answer(body, output, now)) return true;
    KeepHead(head);
    body_.assign(body);
    return false;
  }
  if (parser_.expects_continue() && rest.empty()) output.append("HTTP/1.1 100 Continue\r\n\r\n");
  KeepHead(head);
  await_ = parser_.chunked() ? Await::kChunks : Await::kBody;
  chunks_.Begin();
  return true;
}

bool Session::TakeBody(std::string_view& rest, std::string& output, base::Instant now) {
  const size_t missing = parser_.content_length() - body_.size();
  const std::string_view part = rest.substr(0, missing);
  body_.append(part);
  rest.remove_prefix(part.size());
  return part.size() == missing && Answer(body_, output, now);
}

bool Session::TakeChunks(std::string_view& rest, std::string& output, base::Instant now) {
  const Chunks::Progress chunks = chunks_.Take(rest, body_);
  rest.remove_prefix(chunks.taken);
  if (chunks.refusal) {
    Refuse(chunks.refusal, output, now);
    return false;
  }
  return chunks.done && Answer(body_, output, now);
}

void Session::KeepHead(std::string_view head) {
  head_.assign(head);
  parser_.MoveHead(head, head_.data());
}

bool Session::Answer(std::string_view body, std::string& output, base::Instant now) {
  Request& request = parser_.request();
  request.body = body;
  handler_.Handle(request, response_, now);
  if (response_.later) {
    response_.Clear();
    await_ = Await::kAnswer;
    return false;
  }
  ++answered_;
  if (!parser_.keep_alive() || draining_) closing_ = true;
  Write(request.method != "HEAD", output, now);
  Forget();
  return true;
}

void Session::Refuse(const Refusal& refusal, std::string& output, base::Instant now) {
  closing_ = true;
  refused_ = true;
  response_.Clear();
  AnswerProblem(refusal.status, refusal.detail, refusal.hint, response_);
  Write(parser_.request().method != "HEAD", output, now);
  Forget();
}

void Session::OnGivenUp(GivenUp why, std::string& output, base::Instant now) {
  if (why == GivenUp::kTooSlow) {
    return Refuse({408, "the request took too long", "send it whole, or raise request_timeout"}, output, now);
  }
  Refuse({503, "the server's buffers are full of unfinished requests",
          "try again later, send smaller requests, or raise max_buffer_bytes"},
         output, now);
}

void Session::Write(bool with_body, std::string& output, base::Instant now) {
  const std::array<char, 29> date = Date(now);
  output.append("HTTP/1.1 ");
  AppendNumber(static_cast<uint64_t>(response_.status), output);
  output.append(" ").append(StatusText(response_.status));
  output.append("\r\nDate: ").append(date.data(), date.size()).append("\r\n");
  if (!IsBare(response_.status)) {
    output.append("Content-Length: ");
    AppendNumber(response_.body.size(), output);
    output.append("\r\n");
  }
  if (closing_) {
    output.append("Connection: close\r\n");
  } else if (!parser_.http11()) {
    output.append("Connection: keep-alive\r\n");
  }
  output.append(response_.fields).append("\r\n");
  if (with_body && !IsBare(response_.status)) output.append(response_.body);
}

// Ready for the next request, without the memory of an unusually large one.
void Session::Forget() {
  await_ = Await::kHead;
  parser_.Forget();
  ShrinkTo(kKeptBytesMax, head_);
  ShrinkTo(kKeptBytesMax, body_);
  response_.Clear();
  ShrinkTo(kKeptBytesMax, response_.body);
}

}  // namespace headgate::http
