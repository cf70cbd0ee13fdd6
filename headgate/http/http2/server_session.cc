#include "headgate/http/http2/server_session.h"

#include <string_view>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/http/http2/field_list.h"
#include "headgate/http/http2/server_stream.h"

namespace headgate::http::http2 {

ServerSession::ServerSession(Application& application, const ServerOptions& options,
                             const net::Peer& peer, Counters& counters)
    : application_(application),
      options_(options),
      peer_(peer),
      counters_(counters),
      endpoint_(Endpoint::Role::kServer,
                {.streams_max = options.streams_max, .head_bytes_max = options.bounds.bytes_max},
                *this, counters),
      head_reader_(options.bounds, options.for_handlers),
      trailer_reader_(options.bounds, options.never_in_trailers) {}

ServerSession::~ServerSession() {
  in_call_ = true;
  AbortAll();
}

ServerSession::Progress ServerSession::OnBytes(std::span<const char> input, std::string& output,
                                               base::Instant now) {
  now_ = now;
  in_call_ = true;
  answered_ = 0;
  endpoint_.Receive({input.data(), input.size()}, now);
  EndLingering();
  Notify();
  if (now >= next_timeout_) GiveUpSlow();
  Send(output);
  const bool close = endpoint_.finished();
  if (close) AbortAll();
  in_call_ = false;
  if (!stopped_ && endpoint_.backlog() > options_.unsent_bytes_max) {
    stopped_ = true;
    counters_.output_stops.Add();
  }
  return {.consumed = input.size(),
          .answered = answered_,
          .close = close,
          .mid_request = endpoint_.mid_message(),
          .stop_reading = stopped_,
          .streaming = !streams_.empty() || draining_,
          .protocol_error = close && endpoint_.failed(),
          .call_at = CallAt()};
}

std::optional<base::Instant> ServerSession::CallAt() {
  base::Instant at = next_timeout_;
  if (!lingering_.empty()) at = std::min(at, Find(lingering_.front())->lingers_until_);
  return at == kNever ? std::nullopt : std::optional(at);
}

base::Instant ServerSession::DueOf(ServerStream& stream) const {
  using For = Patience::For;
  const base::Duration timeout = options_.request_timeout;
  const Patience patience = stream.receiver_->patience();
  switch (patience.what) {
    case For::kRequest:
      return stream.began_ + timeout;
    case For::kAnswer:
    case For::kHeldAnswer:
      return patience.since + timeout;
    case For::kReceiver: {
      if (stream.body_.empty()) break;
      // A client that opens no window takes nothing of its answer.
      const uint64_t taken = stream.body_.taken_in_all();
      if (std::exchange(stream.taken_before_, taken) != taken || !stream.takes_nothing_since_)
        stream.takes_nothing_since_ = now_;
      return *stream.takes_nothing_since_ + timeout;
    }
    case For::kNothing:
      break;
  }
  return now_ + timeout;
}

// Checks all streams, and notes when the next one can become too slow; it need not be called
// before.
void ServerSession::GiveUpSlow() {
  next_timeout_ = kNever;
  for (const auto& stream : streams_) {
    if (!stream->receives()) continue;
    const base::Instant due = DueOf(*stream);
    if (due <= now_) {
      counters_.timeouts.Add();
      stream->Abort();
    } else {
      next_timeout_ = std::min(next_timeout_, due);
    }
  }
}

void ServerSession::Send(std::string& output) {
  do {
    endpoint_.Send(output, now_);
    Notify();
  } while (endpoint_.wants_send());
}

void ServerSession::OnUnsent(size_t bytes, base::Instant now) {
  now_ = now;
  endpoint_.SetBacklog(bytes);
  const bool resumes = stopped_ && bytes < options_.unsent_bytes_max / 2;
  if (resumes) stopped_ = false;
  if (resumes || endpoint_.wants_send()) Wake();
}

// A client that has closed its direction can neither open windows nor answer a PING.
bool ServerSession::OnInputEnd(base::Instant now) {
  now_ = now;
  AbortAll();
  return false;
}

// GOAWAY tells the client which of its requests it may send again elsewhere.
void ServerSession::OnGivenUp(GivenUp why, std::string& output, base::Instant now) {
  now_ = now;
  in_call_ = true;
  endpoint_.Fail(why == GivenUp::kIdle ? ErrorCode::kNoError : ErrorCode::kEnhanceYourCalm);
  endpoint_.Send(output, now);
  AbortAll();
}

size_t ServerSession::BufferedBytes() const {
  size_t bytes = buffered_;
  for (const auto& stream : streams_) {
    bytes += stream->body_.held_bytes();
    if (stream->receiver_ != nullptr) bytes += stream->receiver_->HeldBytes();
  }
  return bytes;
}

void ServerSession::OnDrain() {
  draining_ = true;
  endpoint_.BeginDrain();
  for (const auto& stream : streams_) {
    if (stream->receives()) stream->receiver_->OnDrain(now_);
  }
  Wake();
}

void ServerSession::Wake() {
  if (!in_call_ && wake_) wake_();
}

// ---- Requests

void ServerSession::OnBlock(int32_t id) {
  if (Find(id) != nullptr) return trailer_reader_.Begin();
  head_reader_.Begin();
  auto stream = std::make_unique<ServerStream>(*this, id, now_);
  stream->index_ = streams_.size();
  endpoint_.SetOwner(id, stream.get());
  endpoint_.ShareFairly(id);
  streams_.push_back(std::move(stream));
}

bool ServerSession::OnField(int32_t id, std::string_view name, std::string_view value) {
  const ServerStream* stream = Find(id);
  HEADGATE_CHECK(stream != nullptr);
  const bool trailer = stream->head_read_;
  const bool valid = trailer ? trailer_reader_.Add(name, value) : head_reader_.Add(name, value);
  if (trailer ? trailer_reader_.is_bomb() : head_reader_.is_bomb()) {
    endpoint_.Flooded(Flood::kFields);
    return false;
  }
  return valid || (options_.for_handlers && !trailer);
}

void ServerSession::OnBlockEnd(int32_t id, bool ends_stream) {
  ServerStream* stream = Find(id);
  HEADGATE_CHECK(stream != nullptr);
  if (!stream->head_read_) return OnRequestHead(*stream, ends_stream);
  // A tunnel has no trailers.
  if (stream->wants_tunnel_ || !trailer_reader_.Finish(ends_stream)) {
    return endpoint_.Reset(id, ErrorCode::kProtocolError);
  }
  OnRequestEnd(*stream, trailer_reader_.fields());
}

void ServerSession::OnRequestHead(ServerStream& stream, bool ends_stream) {
  using Verdict = RequestHeadReader::Verdict;
  const Verdict verdict = head_reader_.Finish(ends_stream);
  if (verdict == Verdict::kMalformed && !options_.for_handlers)
    return endpoint_.Reset(stream.id_, ErrorCode::kProtocolError);
  stream.head_read_ = true;
  stream.request_ended_ = ends_stream;
  switch (verdict) {
    case Verdict::kTooLarge:
      return Answer(stream, {431, "the head is too large, or has too many fields", "send less"});
    case Verdict::kConnect:
      return Answer(stream, kNoConnect);
    case Verdict::kOtherExpectation:
      return Answer(stream, kOtherExpectation);
    case Verdict::kMalformed:
      counters_.malformed_heads.Add();
      return Answer(stream, {400, "the head of the request is malformed", kAmbiguous});
    case Verdict::kValid:
      break;
  }
  stream.wants_tunnel_ = !head_reader_.head().protocol.empty();
  stream.is_head_ = head_reader_.head().method == "HEAD";
  stream.receiver_ = application_.OnRequest(std::move(head_reader_.head()), peer_, stream, now_);
  HEADGATE_CHECK(stream.receiver_ != nullptr);
  if (options_.request_timeout > base::Duration(0))
    next_timeout_ = std::min(next_timeout_, now_ + options_.request_timeout);
  if (ends_stream) OnRequestEnd(stream, {});
}

void ServerSession::Answer(ServerStream& stream, const Refusal& refusal) {
  counters_.refused_heads.Add();
  ResponseHead answer;
  std::string body;
  if (options_.for_handlers &&
      application_.AnswerRefusedHead(head_reader_.head(), peer_, refusal, answer, body, now_)) {
    stream.is_head_ = head_reader_.head().method == "HEAD";
    answer.body = {.kind = BodyLength::Kind::kSized, .bytes = body.size()};
    stream.SendHead(answer);
    stream.SendData(body);
    return stream.SendEnd(kNoFields);
  }
  if (!endpoint_.Afford(Flood::kProvoked, now_)) return;
  FieldList fields;
  const std::string status = std::to_string(refusal.status);
  fields.Add(":status", status);
  fields.Add("content-length", "0");
  endpoint_.SubmitHead(stream.id_, fields, nullptr);
}

void ServerSession::OnData(int32_t id, std::string_view bytes) {
  ServerStream* stream = Find(id);
  if (stream == nullptr) return;
  if (!stream->receives()) return Drop(*stream, bytes.size());
  // Beyond the window: nghttp2 has reset the stream already.
  if (stream->buffered_ + stream->early_.size() + bytes.size() > kWindowBytes) return;
  if (stream->wants_tunnel_ && (!stream->answered_ || !stream->early_.empty())) {
    stream->early_ += bytes;
    buffered_ += bytes.size();
    return;
  }
  if (stream->wants_tunnel_ && !stream->tunnel_) return Drop(*stream, bytes.size());
  stream->buffered_ += bytes.size();
  buffered_ += bytes.size();
  stream->receiver_->OnData(bytes, now_);
}

void ServerSession::OnStreamEnd(int32_t id) {
  if (ServerStream* stream = Find(id)) OnRequestEnd(*stream, {});
}

void ServerSession::OnRequestEnd(ServerStream& stream, const Fields& trailers) {
  stream.request_ended_ = true;
  // The receiver of a tunnel is told the end of its input only after the answer.
  if (stream.wants_tunnel_ && (!stream.answered_ || !stream.early_.empty())) return;
  if (!stream.receives() || std::exchange(stream.end_told_, true)) return;
  stream.receiver_->OnEnd(trailers, now_);
}

// ---- Responses

void ServerSession::OnSent(int32_t id, bool ends_stream) {
  ServerStream* stream = Find(id);
  if (stream == nullptr || !ends_stream) return;
  stream->end_sent_ = true;
  ++answered_;
  if (stream->request_ended_ || stream->tunnel_) return;
  stream->lingers_ = true;
  stream->lingers_until_ = now_ + options_.linger_timeout;
  lingering_.push_back(id);
  ready_.push_back(id);
}

void ServerSession::Drop(ServerStream& stream, size_t bytes) {
  stream.dropped_ += bytes;
  if (stream.dropped_ > options_.linger_bytes_max) {
    endpoint_.Reset(stream.id_, ErrorCode::kNoError);
  } else {
    endpoint_.Consume(stream.id_, bytes);
  }
}

void ServerSession::EndLingering() {
  for (const int32_t id : lingering_) {
    if (Find(id)->lingers_until_ > now_) break;
    endpoint_.Reset(id, ErrorCode::kNoError);
  }
}

void ServerSession::OnRoom(int32_t id) {
  ServerStream* stream = Find(id);
  if (stream == nullptr || std::exchange(stream->has_room_, true)) return;
  ready_.push_back(id);
}

void ServerSession::OnPeerReset(int32_t id) {
  if (ServerStream* stream = Find(id)) stream->peer_reset_ = true;
}

void ServerSession::OnClosed(int32_t id, ErrorCode error) {
  ServerStream* stream = Find(id);
  if (stream == nullptr) return;
  stream->malformed_ = error == ErrorCode::kProtocolError && !stream->peer_reset_;
  if (!stream->head_read_) counters_.malformed_heads.Add();
  Close(*stream);
}

void ServerSession::Close(ServerStream& stream) {
  stream.closed_ = true;
  if (stream.lingers_) std::erase(lingering_, stream.id_);
  std::unique_ptr<ServerStream>& place = streams_[stream.index_];
  closed_.push_back(std::move(place));
  if (&place != &streams_.back()) {
    place = std::move(streams_.back());
    place->index_ = stream.index_;
  }
  streams_.pop_back();
}

void ServerSession::Notify() {
  // Receivers may add to both lists.
  while (!closed_.empty() || !ready_.empty()) {
    for (size_t i = 0; i < ready_.size(); ++i) {
      if (ServerStream* stream = Find(ready_[i])) NotifyReady(*stream);
    }
    ready_.clear();
    for (size_t i = 0; i < closed_.size(); ++i) (void)Part(*closed_[i]);
    closed_.clear();
  }
}

void ServerSession::NotifyReady(ServerStream& stream) {
  if (stream.wants_tunnel_ && stream.answered_ && stream.receives()) {
    const std::string early = std::exchange(stream.early_, {});
    buffered_ -= early.size();
    if (stream.tunnel_ && !early.empty()) OnData(stream.id_, early);
    // If the answer refuses the tunnel, the request ends here, without a body.
    if (stream.request_ended_ || !stream.tunnel_) {
      if (!std::exchange(stream.end_told_, true)) stream.receiver_->OnEnd({}, now_);
    }
  }
  if (std::exchange(stream.calls_again_, false) && stream.receives())
    stream.receiver_->OnCalledAgain(now_);
  // More may have been sent meanwhile.
  const bool has_room = !stream.ended_ && stream.body_.size() < kWindowBytes;
  if (std::exchange(stream.has_room_, false) && has_room && stream.receives())
    stream.receiver_->OnWritable(now_);
  if (!stream.lingers_) return;
  stream.body_.Discard();
  endpoint_.Consume(stream.id_, Part(stream));
}

size_t ServerSession::Part(ServerStream& stream) {
  const bool complete = stream.end_sent_ && stream.request_ended_;
  if (stream.receiver_ != nullptr && !complete && !stream.aborted_) stream.receiver_->OnAbort(now_);
  stream.receiver_.reset();
  const size_t left = std::exchange(stream.buffered_, 0) + std::exchange(stream.early_, {}).size();
  buffered_ -= left;
  return left;
}

void ServerSession::AbortAll() {
  while (!streams_.empty()) {
    endpoint_.SetOwner(streams_.back()->id_, nullptr);
    Close(*streams_.back());
  }
  Notify();
}

}  // namespace headgate::http::http2
