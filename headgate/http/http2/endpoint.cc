#include "headgate/http/http2/endpoint.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>

#include "headgate/base/check.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http2/field_list.h"

namespace headgate::http::http2 {
namespace {

// If more output than this is unsent, DATA waits. It is twice the usual refill of a socket buffer,
// so that the connection is never idle, and small, because no stream's buffer counts it.
constexpr size_t kBacklogMax = size_t{128} << 10;

// Refilled on receipt, so its size only has to cover a round trip.
constexpr int32_t kConnectionWindowBytes = 1 << 20;

constexpr size_t kPrefaceBytes = 24;

std::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

bool IsOurChoice(uint32_t error) {
  return error == NGHTTP2_NO_ERROR || error == NGHTTP2_CANCEL || error == NGHTTP2_INTERNAL_ERROR;
}

}  // namespace

// nghttp2's callbacks. Their `user` is the endpoint.
struct Endpoint::Callbacks {
  static Endpoint& Self(void* user) { return *static_cast<Endpoint*>(user); }

  static int OnBeginHeaders(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Self(user).events_.OnBlock(frame->hd.stream_id);
    return 0;
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Endpoint& self = Self(user);
    if (self.failed_) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const int32_t stream = frame->hd.stream_id;
    if (self.events_.OnField(stream, View(name, name_size), View(value, value_size))) return 0;
    self.Reset(stream, ErrorCode::kProtocolError);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  // Otherwise nghttp2 would leave the field out and continue.
  static int OnInvalidHeader(nghttp2_session*, const nghttp2_frame*, const uint8_t*, size_t,
                             const uint8_t*, size_t, uint8_t, void*) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int OnFrame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Endpoint& self = Self(user);
    const int32_t stream = frame->hd.stream_id;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
        self.events_.OnBlockEnd(stream, ends);
        break;
      case NGHTTP2_DATA:
        if (ends) {
          self.events_.OnStreamEnd(stream);
        } else if (frame->hd.length > 0 && frame->hd.length == frame->data.padlen) {
          (void)self.Afford(Flood::kEmptyData, self.now_);
        }
        break;
      case NGHTTP2_RST_STREAM:
        self.events_.OnPeerReset(stream);
        break;
      case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) self.events_.OnSettings();
        break;
      case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) self.events_.OnPingAnswered();
        break;
      case NGHTTP2_GOAWAY:
        self.events_.OnGoaway();
        break;
      default:
        break;
    }
    return 0;
  }

  // Called for a stream that is refused before it is opened, too.
  static int OnInvalidFrame(nghttp2_session* session, const nghttp2_frame* frame, int, void* user) {
    const int32_t stream = frame->hd.stream_id;
    if (stream != 0 && nghttp2_session_find_stream(session, stream) == nullptr)
      Self(user).NoteClosed(stream, true);
    return 0;
  }

  static int OnDataChunk(nghttp2_session* session, uint8_t, int32_t stream, const uint8_t* bytes,
                         size_t size, void* user) {
    (void)nghttp2_session_consume_connection(session, size);
    Self(user).events_.OnData(stream, View(bytes, size));
    return 0;
  }

  static int OnFrameSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Endpoint& self = Self(user);
    const int32_t stream = frame->hd.stream_id;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_DATA:
        self.guard_.Earn(Flood::kWindowUpdates, 4);
        self.guard_.Earn(Flood::kPings, 1);
        [[fallthrough]];
      case NGHTTP2_HEADERS:
        if (ends) self.guard_.Earn(Flood::kResets, 1);
        self.events_.OnSent(stream, ends);
        break;
      case NGHTTP2_RST_STREAM:
        if (!IsOurChoice(frame->rst_stream.error_code) && !self.has_answered(stream))
          ++self.provoked_;
        self.NoteClosed(stream, true);
        break;
      case NGHTTP2_GOAWAY:
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR) {
          self.failed_ = true;
        } else if (frame->goaway.last_stream_id == INT32_MAX) {
          // The notice of a drain. PING must not overtake it, as it does in nghttp2's queues.
          (void)nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, nullptr);
        }
        break;
      default:
        break;
    }
    return 0;
  }

  static int OnStreamClose(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
    Endpoint& self = Self(user);
    self.NoteClosed(stream, false);
    self.events_.OnClosed(stream, static_cast<ErrorCode>(error));
    return 0;
  }

  static ssize_t ReadBody(nghttp2_session* session, int32_t stream, uint8_t*, size_t bytes_max,
                          uint32_t* flags, nghttp2_data_source* source, void* user);

  static int SendBody(nghttp2_session*, nghttp2_frame* frame, const uint8_t* header, size_t size,
                      nghttp2_data_source* source, void* user) {
    Endpoint& self = Self(user);
    auto& body = *static_cast<OutgoingBody*>(source->ptr);
    self.Append(View(header, kFrameHeaderBytes));
    self.Append(body.Front(size));
    if (body.Remove(size)) self.events_.OnRoom(frame->hd.stream_id);
    return 0;
  }

  static const nghttp2_session_callbacks* Get() {
    static const nghttp2_session_callbacks* const callbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      HEADGATE_CHECK(nghttp2_session_callbacks_new(&made) == 0);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, OnBeginHeaders);
      nghttp2_session_callbacks_set_on_header_callback(made, OnHeader);
      nghttp2_session_callbacks_set_on_invalid_header_callback(made, OnInvalidHeader);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, OnFrame);
      nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, OnInvalidFrame);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, OnDataChunk);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, OnFrameSent);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, OnStreamClose);
      nghttp2_session_callbacks_set_send_data_callback(made, SendBody);
      return made;
    }();
    return callbacks;
  }
};

ssize_t Endpoint::Callbacks::ReadBody(nghttp2_session* session, int32_t stream, uint8_t*,
                                      size_t bytes_max, uint32_t* flags,
                                      nghttp2_data_source* source, void* user) {
  Endpoint& self = Self(user);
  const auto& body = *static_cast<const OutgoingBody*>(source->ptr);
  if (body.empty() && !body.ended()) return NGHTTP2_ERR_DEFERRED;
  if (!body.empty() && self.backlog_ >= kBacklogMax) {
    self.held_.push_back(stream);
    return NGHTTP2_ERR_DEFERRED;
  }
  const size_t size = std::min(bytes_max, body.size());
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (body.ended() && size == body.size()) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    FieldList trailers;
    trailers.AddTrailers(body.trailers());
    if (trailers.size() > 0) {
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      (void)nghttp2_submit_trailer(session, stream, trailers.data(), trailers.size());
    }
  }
  return static_cast<ssize_t>(size);
}

Endpoint::Endpoint(Role role, const Options& options, Events& events, Counters& counters)
    : role_(role),
      options_(options),
      events_(events),
      counters_(counters),
      scan_(role == Role::kServer ? kPrefaceBytes : 0) {
  nghttp2_option* option = nullptr;
  HEADGATE_CHECK(nghttp2_option_new(&option) == 0);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_max_reserved_remote_streams(option, 0);
  // FloodGuard counts resets, by our clock.
  nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
  const auto* callbacks = Callbacks::Get();
  const bool server = role == Role::kServer;
  if (server) {
    nghttp2_mem allocator = frame_buffer_.Allocator();
    HEADGATE_CHECK(nghttp2_session_server_new3(&session_, callbacks, this, option, &allocator) ==
                   0);
  } else {
    // A client's session needs a buffer of its own, because the buffer holds the preface until the
    // first Send.
    HEADGATE_CHECK(nghttp2_session_client_new2(&session_, callbacks, this, option) == 0);
  }
  nghttp2_option_del(option);

  const std::array<nghttp2_settings_entry, 5> settings = {{
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(kWindowBytes)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<uint32_t>(options.head_bytes_max)},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, server ? options.streams_max : 0},
      server ? nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1}
             : nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
  }};
  HEADGATE_CHECK(
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
  HEADGATE_CHECK(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                                       kConnectionWindowBytes) == 0);
}

Endpoint::~Endpoint() { nghttp2_session_del(session_); }

void Endpoint::Receive(std::string_view bytes, base::Instant now) {
  now = now_ = std::max(now, now_);
  while (!bytes.empty() && !failed_ && !broken_) {
    const FrameScan::Piece piece = scan_.Next(bytes);
    if (piece.begins_frame && !Judge(scan_.header(), now)) return;
    if (piece.bytes.empty()) continue;
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const uint8_t*>(piece.bytes.data()), piece.bytes.size());
    if (taken < 0) {
      // A wrong preface: nghttp2 itself ends the connection for every other error.
      Fail(ErrorCode::kProtocolError);
    }
    events_.AfterFrame();
    if (nghttp2_session_want_read(session_) == 0) return;
  }
}

void Endpoint::Send(std::string& output, base::Instant now) {
  HEADGATE_DCHECK(role_ == Role::kClient || frame_buffer_.is_of_this_thread());
  output_ = &output;
  ReleaseHeld();
  while (true) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size > 0) {
      Append(View(bytes, static_cast<size_t>(size)));
      continue;
    }
    if (size < 0) broken_ = failed_ = true;
    bool flooded = false;
    for (; provoked_ > 0 && !flooded; --provoked_) flooded = !Afford(Flood::kProvoked, now);
    provoked_ = 0;
    if (!flooded || broken_) break;  // otherwise GOAWAY follows
  }
  output_ = nullptr;
}

bool Endpoint::wants_send() const {
  return !broken_ &&
         (nghttp2_session_want_write(session_) != 0 || (!held_.empty() && backlog_ < kBacklogMax));
}

bool Endpoint::finished() const {
  return broken_ ||
         (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
}

void Endpoint::Append(std::string_view bytes) {
  output_->append(bytes);
  backlog_ += bytes.size();
}

void Endpoint::ReleaseHeld() {
  if (backlog_ >= kBacklogMax) return;
  for (const int32_t stream : held_) Resume(stream);
  held_.clear();
}

// ---- Streams

namespace {

nghttp2_data_provider Provider(OutgoingBody* body, nghttp2_data_source_read_callback read) {
  nghttp2_data_provider provider{};
  provider.source.ptr = body;
  provider.read_callback = read;
  return provider;
}

}  // namespace

void Endpoint::SubmitHead(int32_t stream, const FieldList& fields, OutgoingBody* body) {
  const nghttp2_data_provider provider = Provider(body, Callbacks::ReadBody);
  (void)nghttp2_submit_response(session_, stream, fields.data(), fields.size(),
                                body != nullptr ? &provider : nullptr);
}

void Endpoint::SubmitInformational(int32_t stream, const FieldList& fields) {
  (void)nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, fields.data(),
                               fields.size(), nullptr);
}

int32_t Endpoint::SubmitRequest(const FieldList& fields, OutgoingBody* body, void* owner) {
  const nghttp2_data_provider provider = Provider(body, Callbacks::ReadBody);
  const int32_t stream = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                body != nullptr ? &provider : nullptr, owner);
  return std::max(stream, 0);
}

void Endpoint::Resume(int32_t stream) { (void)nghttp2_session_resume_data(session_, stream); }

void Endpoint::Reset(int32_t stream, ErrorCode error) {
  (void)nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream,
                                  static_cast<uint32_t>(error));
}

void Endpoint::Consume(int32_t stream, size_t bytes) {
  (void)nghttp2_session_consume_stream(session_, stream, bytes);
}

void* Endpoint::OwnerOf(int32_t stream) const {
  return nghttp2_session_get_stream_user_data(session_, stream);
}

void Endpoint::SetOwner(int32_t stream, void* owner) {
  (void)nghttp2_session_set_stream_user_data(session_, stream, owner);
}

void Endpoint::ShareFairly(int32_t stream) {
  const nghttp2_extpri priority{.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
  (void)nghttp2_session_change_extpri_stream_priority(session_, stream, &priority, 1);
}

// ---- The connection

void Endpoint::Fail(ErrorCode error) {
  failed_ = true;
  (void)nghttp2_session_terminate_session(session_, static_cast<uint32_t>(error));
}

void Endpoint::BeginDrain() {
  if (draining_ || failed_) return;
  draining_ = true;
  (void)nghttp2_submit_shutdown_notice(session_);
}

void Endpoint::FinishDrain() {
  if (!draining_ || last_taken_ != INT32_MAX) return;
  last_taken_ = nghttp2_session_get_last_proc_stream_id(session_);
  (void)nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last_taken_, NGHTTP2_NO_ERROR, nullptr,
                              0);
}

bool Endpoint::has_answered(int32_t stream) const {
  return role_ == Role::kServer && nghttp2_session_get_stream_local_close(session_, stream) == 1;
}

uint32_t Endpoint::peer_streams_max() const {
  return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

bool Endpoint::peer_takes_tunnels() const {
  return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) ==
         1;
}

}  // namespace headgate::http::http2
