#include "headgate/http/http2/client_session.h"

#include <algorithm>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/http/http2/client_stream.h"
#include "headgate/http/http2/field_list.h"

namespace headgate::http::http2 {
namespace {

// Informational responses of one exchange.
constexpr int kInformationalMax = 32;

// Streams that may be abandoned before the session is worn: at most 190 in 30 s. The strictest
// servers that are common are those of Netty, such as grpc-java: they end a connection after 200
// resets in 30 s. nghttp2 (Apache, nghttpd), Node.js and ServerSession take 1,000, and 33 a second.
constexpr Budget kAbandoned{.burst = 100, .interval = std::chrono::nanoseconds(333'333'334)};

}  // namespace

ClientSession::ClientSession(const ClientOptions& options, Counters& counters)
    : options_(options),
      endpoint_(Endpoint::Role::kClient, {.head_bytes_max = options.bounds.bytes_max}, *this,
                counters),
      head_reader_(options.bounds),
      trailer_reader_(options.bounds) {}

ClientSession::~ClientSession() { HEADGATE_CHECK(open_ == 0); }

size_t ClientSession::free_places() const {
  if (finished()) return 0;
  const size_t places = std::min(options_.streams_max, endpoint_.peer_streams_max());
  return places - std::min(places, streams_.size());
}

bool ClientSession::finished() const {
  return going_away_ || distrusted_ || retired_ || broken_ || endpoint_.failed() ||
         endpoint_.finished();
}

void ClientSession::Retire() {
  retired_ = true;
  Wake();
}

ClientExchange& ClientSession::Begin(const RequestHead& head, ResponseReceiver& receiver,
                                     base::Instant now) {
  HEADGATE_CHECK(free_places() > 0);
  now_ = now;
  streams_.push_back(std::make_unique<ClientStream>(*this, receiver));
  ClientStream& stream = *streams_.back();
  stream.index_ = streams_.size() - 1;
  ++open_;
  if (head.protocol.empty() || settings_seen_) {
    Open(stream, head);
  } else {
    stream.waiting_ = std::make_unique<RequestHead>(head);
  }
  Wake();
  return stream;
}

void ClientSession::Open(ClientStream& stream, const RequestHead& head) {
  const bool tunnel = !head.protocol.empty();
  if (tunnel && !endpoint_.peer_takes_tunnels()) {
    return Close(stream, Failure::kNoTunnels, "the server takes no tunnels over HTTP/2");
  }
  stream.request_ = {.head = head.method == "HEAD", .tunnel = tunnel};
  const bool sized = head.body.kind == BodyLength::Kind::kSized;
  stream.bodiless_ =
      !tunnel && (head.body.kind == BodyLength::Kind::kNone || (sized && head.body.bytes == 0));
  stream.body_.Begin(stream.bodiless_ ? BodyLength{} : head.body);
  const std::string length = std::to_string(head.body.bytes);
  FieldList fields;
  fields.Add(":method", tunnel ? std::string_view("CONNECT") : head.method);
  fields.Add(":scheme", head.scheme.empty() ? std::string_view("http") : head.scheme);
  if (!head.authority.empty()) fields.Add(":authority", head.authority);
  fields.Add(":path", head.target);
  if (tunnel) fields.Add(":protocol", head.protocol);
  fields.Add(head.fields);
  if (sized) fields.Add("content-length", length);
  if (head.accepts_trailers) fields.Add("te", "trailers");
  if (head.expects_continue) fields.Add("expect", "100-continue");
  stream.id_ = endpoint_.SubmitRequest(fields, stream.bodiless_ ? nullptr : &stream.body_, &stream);
  if (stream.id_ == 0) {
    going_away_ = true;
    Close(stream, Failure::kNotSent, "the connection has no stream numbers left");
  }
}

void ClientSession::OnBytes(std::string_view bytes, base::Instant now) {
  now_ = now;
  in_call_ = true;
  endpoint_.Receive(bytes, now);
  Settle();
  in_call_ = false;
}

void ClientSession::OnInputEnd(base::Instant now) {
  OnBroken("the server closed the connection", now);
}

void ClientSession::OnBroken(std::string_view why, base::Instant now) {
  now_ = now;
  in_call_ = true;
  broken_ = true;
  FailAll(why);
  in_call_ = false;
}

std::string& ClientSession::output() {
  const bool was_in_call = std::exchange(in_call_, true);
  if (!broken_ && endpoint_.wants_send()) endpoint_.Send(output_, now_);
  in_call_ = was_in_call;
  NoteBacklog();
  return output_;
}

void ClientSession::OnUnsent(size_t bytes, base::Instant now) {
  now_ = now;
  in_call_ = true;
  endpoint_.SetBacklog(bytes + output_.size());
  const bool stopped = stopped_;
  Settle();
  in_call_ = false;
  if (!output_.empty() || stopped != stopped_) Wake();
}

void ClientSession::NoteBacklog() {
  const size_t backlog = endpoint_.backlog();
  if (backlog > options_.unsent_bytes_max) stopped_ = true;
  if (backlog < options_.unsent_bytes_max / 2) stopped_ = false;
}

void ClientSession::Settle() {
  if (broken_) return Notify();
  do {
    Notify();
    endpoint_.Send(output_, now_);
  } while (endpoint_.wants_send());
  if (endpoint_.failed()) {
    FailAll("the server violated the protocol on another stream");
  } else if (endpoint_.finished()) {
    FailAll("the connection ended");
  }
  Notify();
  NoteBacklog();
}

void ClientSession::Wake() {
  if (!in_call_ && wake_) wake_();
}

// ---- Responses

void ClientSession::OnBlock(int32_t id) {
  const ClientStream* stream = Find(id);
  if (stream != nullptr && stream->answered_) return trailer_reader_.Begin();
  head_reader_.Begin();
}

bool ClientSession::OnField(int32_t id, std::string_view name, std::string_view value) {
  const ClientStream* stream = Find(id);
  if (stream == nullptr) return true;
  const bool trailer = stream->answered_;
  const bool valid = trailer ? trailer_reader_.Add(name, value) : head_reader_.Add(name, value);
  if (trailer ? trailer_reader_.is_bomb() : head_reader_.is_bomb()) {
    endpoint_.Flooded(Flood::kFields);
    return false;
  }
  return valid;
}

void ClientSession::OnBlockEnd(int32_t id, bool ends_stream) {
  ClientStream* stream = Find(id);
  if (stream == nullptr) return;
  if (!stream->answered_) return OnResponseHead(*stream, ends_stream);
  if (stream->tunnel_ || !trailer_reader_.Finish(ends_stream))
    return Refuse(*stream, "the trailers of the response are invalid");
  OnResponseEnd(*stream, trailer_reader_.fields());
}

void ClientSession::OnResponseHead(ClientStream& stream, bool ends_stream) {
  using Verdict = ResponseHeadReader::Verdict;
  ResponseReceiver* receiver = stream.receiver_;
  switch (head_reader_.Finish(stream.request_, ends_stream)) {
    case Verdict::kInvalid:
      return Refuse(stream, "the head of the response is invalid");
    case Verdict::kInformational:
      if (++stream.informational_ > kInformationalMax)
        return Refuse(stream, "too many informational responses");
      if (receiver != nullptr) receiver->OnInformational(head_reader_.head(), now_);
      return;
    case Verdict::kFinal:
      break;
  }
  stream.answered_ = true;
  stream.tunnel_ = head_reader_.head().body.kind == BodyLength::Kind::kTunnel;
  if (receiver == nullptr) return;
  receiver->OnHead(std::move(head_reader_.head()), now_);
  if (ends_stream) OnResponseEnd(stream, {});
}

void ClientSession::OnData(int32_t id, std::string_view bytes) {
  ClientStream* stream = Find(id);
  if (stream == nullptr || stream->receiver_ == nullptr) return;
  // Beyond the window: nghttp2 has reset the stream already.
  if (stream->buffered_ + bytes.size() > kWindowBytes) return;
  stream->buffered_ += bytes.size();
  stream->receiver_->OnData(bytes, now_);
}

void ClientSession::OnStreamEnd(int32_t id) {
  if (ClientStream* stream = Find(id)) OnResponseEnd(*stream, {});
}

void ClientSession::OnResponseEnd(ClientStream& stream, const Fields& trailers) {
  stream.complete_ = true;
  if (stream.tunnel_) {
    if (stream.receiver_ != nullptr) stream.receiver_->OnEnd(trailers, now_);
    return;
  }
  ResponseReceiver* const receiver = Detach(stream);
  // The rest of the request is not wanted.
  if (!stream.end_sent_) {
    stream.body_.Discard();
    Abandon(stream, ErrorCode::kNoError);
  }
  if (receiver != nullptr) receiver->OnEnd(trailers, now_);
}

void ClientSession::Refuse(ClientStream& stream, std::string_view detail) {
  stream.failure_ = Failure::kInvalid;
  stream.detail_ = detail;
  stream.body_.Discard();
  endpoint_.Reset(stream.id_, ErrorCode::kProtocolError);
}

void ClientSession::Abandon(ClientStream& stream, ErrorCode error) {
  // If HEADERS were not sent yet, the server sees neither them nor the reset, so this stream does
  // not count.
  if (stream.sent_ && !TakeFrom(kAbandoned, abandoned_full_at_, now_)) worn_ = true;
  endpoint_.Reset(stream.id_, error);
}

void ClientSession::OnPeerReset(int32_t id) {
  if (ClientStream* stream = Find(id)) stream->peer_reset_ = true;
}

void ClientSession::OnSent(int32_t id, bool ends_stream) {
  ClientStream* stream = Find(id);
  if (stream == nullptr) return;
  stream->sent_ = true;
  stream->end_sent_ = ends_stream;
}

void ClientSession::OnRoom(int32_t id) {
  ClientStream* stream = Find(id);
  if (stream == nullptr || std::exchange(stream->has_room_, true)) return;
  ready_.push_back(id);
}

void ClientSession::OnSettings() {
  if (std::exchange(settings_seen_, true)) return;
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (const auto head = std::move(streams_[i]->waiting_)) Open(*streams_[i--], *head);
  }
}

// ---- Ends

void ClientSession::OnClosed(int32_t id, ErrorCode error) {
  ClientStream* stream = Find(id);
  if (stream == nullptr) return;
  if (stream->failure_ == Failure::kInvalid) {
    distrusted_ = distrusted_ || !stream->short_request_;
    return Close(*stream, Failure::kInvalid, stream->detail_);
  }
  if (stream->complete_ && !stream->peer_reset_) return Close(*stream, Failure::kTruncated, {});
  if (error == ErrorCode::kRefusedStream && !stream->answered_)
    return Close(*stream, Failure::kNotSent, "the server refused the stream");
  if (!stream->peer_reset_) {
    distrusted_ = distrusted_ || stream->receiver_ != nullptr;
    return Close(*stream, Failure::kInvalid, "the response violates the protocol");
  }
  Close(*stream, stream->answered_ ? Failure::kTruncated : Failure::kNoAnswer,
        "the server reset the stream");
}

void ClientSession::Close(ClientStream& stream, Failure failure, std::string_view detail) {
  stream.closed_ = true;
  stream.failure_ = failure;
  stream.detail_ = detail;
  std::unique_ptr<ClientStream>& place = streams_[stream.index_];
  closed_.push_back(std::move(place));
  if (&place != &streams_.back()) {
    place = std::move(streams_.back());
    place->index_ = stream.index_;
  }
  streams_.pop_back();
}

void ClientSession::FailAll(std::string_view detail) {
  while (!streams_.empty()) {
    ClientStream& stream = *streams_.back();
    if (stream.id_ != 0) endpoint_.SetOwner(stream.id_, nullptr);
    Failure failure = stream.answered_ ? Failure::kTruncated : Failure::kNoAnswer;
    if (endpoint_.failed()) failure = Failure::kInvalid;
    if (!stream.sent_) failure = Failure::kNotSent;
    Close(stream, failure, detail);
  }
  Notify();
}

void ClientSession::Notify() {
  // Receivers may add to both lists while they are called.
  while (!closed_.empty() || !ready_.empty()) {
    for (size_t i = 0; i < ready_.size(); ++i) {
      ClientStream* stream = Find(ready_[i]);
      if (stream == nullptr || !std::exchange(stream->has_room_, false)) continue;
      // More may have been sent meanwhile.
      const bool has_room = !stream->ended_ && stream->body_.size() < kWindowBytes;
      if (has_room && stream->receiver_ != nullptr) stream->receiver_->OnWritable(now_);
    }
    ready_.clear();
    for (size_t i = 0; i < closed_.size(); ++i) {
      const std::unique_ptr<ClientStream> stream = std::move(closed_[i]);
      ResponseReceiver* const receiver = Detach(*stream);
      const bool ended =
          stream->complete_ && !stream->peer_reset_ && (!stream->tunnel_ || stream->end_sent_);
      if (receiver != nullptr && !ended)
        receiver->OnFailed(stream->failure_, stream->detail_, now_);
    }
    closed_.clear();
  }
}

ResponseReceiver* ClientSession::Detach(ClientStream& stream) {
  if (stream.receiver_ != nullptr) --open_;
  return std::exchange(stream.receiver_, nullptr);
}

}  // namespace headgate::http::http2
