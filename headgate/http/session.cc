#include "headgate/http/session.h"

#include <utility>

namespace headgate::http {

Session::Session(Handler& handler, const Options& options, net::Peer peer)
    : handler_(handler), options_(options), parser_(options.bounds), chunks_(options.bounds) {
  parser_.request().peer = std::move(peer);
  parser_.request().suspension = &suspension_;
}

void Session::SetWaker(std::function<void()> wake) {
  suspension_.wake = [this, wake = std::move(wake)] {
    sink_is_busy_ = false;
    wake();
  };
}

void Session::OnDrain() {
  draining_ = true;
  if (await_ == Await::kStream && response_.stream->endless() && suspension_.wake)
    suspension_.wake();
}

Session::Progress Session::OnBytes(std::span<const char> input, std::string& output,
                                   base::Instant now) {
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
      case Await::kStream:
        more = ContinueStream(output, now);
        break;
    }
  }
  ShrinkBuffers();
  Progress progress = Report(rest, more, now);
  progress.consumed = closing_ ? input.size() : input.size() - rest.size();
  return progress;
}

Session::Progress Session::Report(std::string_view rest, bool more, base::Instant now) {
  Progress progress{.answered = std::exchange(answered_, 0)};
  const bool streams = await_ == Await::kStream;
  wait_.Report(await_ == Await::kAnswer, now, progress);
  progress.close = closing_;
  if (await_ == Await::kAnswer && held_until_) {
    progress.ends_with_peer = true;
    progress.waiting_since = held_until_;
  }
  progress.protocol_error = refused_;
  progress.mid_request = !streams && (!rest.empty() || await_ != Await::kHead);
  progress.more = more && (!rest.empty() || streams);
  if (!stalled_since_) return progress;
  // Continue reading, to notice when the client of an endless stream disconnects.
  progress.streaming = streams && response_.stream->endless();
  progress.stop_reading = !progress.streaming;
  if (!progress.streaming) progress.waiting_since = stalled_since_;
  return progress;
}

bool Session::TakeHead(std::string_view& rest, std::string& output, base::Instant now) {
  if (!scan_.begun()) {
    while (rest.starts_with("\r\n"))
      rest.remove_prefix(2);  // RFC 9112, 2.2: an empty line before a request line is ignored
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
  if (parser_.names_host() && !options_.hosts.Knows(parser_.host()) &&
      !handler_.TakesAnyHost(parser_.request().path())) {
    Refuse({421, "this server does not know the name in Host",
            "use an address or localhost, or start the server with --known-host NAME"},
           output, now);
    return false;
  }
  rest.remove_prefix(head_size);

  body_left_ = parser_.content_length();
  if (parser_.chunked() || body_left_ > 0 || HasBody(parser_.request().method)) {
    Handler::Reception reception = handler_.Receive(parser_.request(), response_, now);
    if (reception.kind == Handler::Reception::Kind::kRefused) {
      last_ = true;
      Write(output, now);
      EndAnswer();
      return false;
    }
    sink_ = std::move(reception.sink);
  }
  if (sink_ == nullptr && !parser_.chunked() && body_left_ <= rest.size())
    return TakeWhole(head, rest, output, now);
  if (parser_.expects_continue() && rest.empty()) output.append("HTTP/1.1 100 Continue\r\n\r\n");
  KeepHead(head);
  await_ = parser_.chunked() ? Await::kChunks : Await::kBody;
  chunks_.Begin();
  return true;
}

// Handles a request whose body has arrived completely.
bool Session::TakeWhole(std::string_view head, std::string_view& rest, std::string& output,
                        base::Instant now) {
  const std::string_view body = rest.substr(0, body_left_);
  rest.remove_prefix(body_left_);
  if (Answer(body, output, now)) return true;
  KeepHead(head);
  body_.assign(body);
  return false;
}

bool Session::TakeBody(std::string_view& rest, std::string& output, base::Instant now) {
  if (sink_is_busy_) return false;
  stalled_since_.reset();
  const std::string_view part = rest.substr(0, body_left_);
  body_.append(part);
  body_left_ -= part.size();
  rest.remove_prefix(part.size());
  GiveToSink(now);
  return !sink_is_busy_ && body_left_ == 0 && Answer(body_, output, now);
}

bool Session::TakeChunks(std::string_view& rest, std::string& output, base::Instant now) {
  if (sink_is_busy_) return false;
  stalled_since_.reset();
  const Chunks::Progress chunks = chunks_.Take(rest, body_);
  rest.remove_prefix(chunks.taken);
  if (chunks.refusal) {
    Refuse(chunks.refusal, output, now);
    return false;
  }
  GiveToSink(now);
  if (!chunks.done) return false;
  // The whole body has been decoded.
  await_ = Await::kBody;
  return TakeBody(rest, output, now);
}

void Session::GiveToSink(base::Instant now) {
  if (sink_ == nullptr || body_.empty()) return;
  // Write may call `wake` before it returns.
  sink_is_busy_ = true;
  if (sink_->Write(body_, now) == BodySink::Took::kMore) sink_is_busy_ = false;
  if (sink_is_busy_) stalled_since_ = now;
  body_.clear();
}

void Session::KeepHead(std::string_view head) {
  head_.assign(head);
  parser_.MoveHead(head, head_.data());
}

}  // namespace headgate::http
