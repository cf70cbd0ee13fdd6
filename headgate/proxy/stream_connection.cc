#include "headgate/proxy/stream_connection.h"

#include <utility>

namespace headgate::proxy {

StreamConnection::StreamConnection(std::shared_ptr<const StreamConnectionOptions> options,
                                   net::EventLoop& loop, const base::DisciplinedClock& clock,
                                   UpstreamConnection::Owner& owner)
    : options_(std::move(options)),
      loop_(loop),
      clock_(clock),
      owner_(owner),
      began_(clock.Now()),
      stream_(loop, *this, options_->stream),
      hook_(loop, [this] {
        if (!closed_ && session_ != nullptr) Pump(clock_.Now());
      }) {
  stream_.Connect(options_->target);
}

void StreamConnection::OnConnected() {
  session_ = options_->make_session();
  session_->SetWaker([this] { loop_.AtEndOfTurn(hook_); });
  const base::Instant now = clock_.Now();
  owner_.OnConnected(now);
  // A session of HTTP/2 begins with output.
  if (!closed_) Pump(now);
}

void StreamConnection::OnBytes(std::string_view bytes) {
  const base::Instant now = clock_.Now();
  in_call_ = true;
  session_->OnBytes(bytes, now);
  in_call_ = false;
  Pump(now);
}

bool StreamConnection::OnInputEnd() {
  const base::Instant now = clock_.Now();
  in_call_ = true;
  session_->OnInputEnd(now);
  in_call_ = false;
  Pump(now);
  return !closed_;
}

void StreamConnection::OnUnsent() { Pump(clock_.Now()); }

void StreamConnection::OnClosed(const absl::Status& why) {
  const base::Instant now = clock_.Now();
  const std::string_view detail(why.message().data(), why.message().size());
  if (session_ == nullptr) {
    const UpstreamConnection::End end = ConnectFailure(now);
    if (options_->on_connect_failure) options_->on_connect_failure(detail);
    if (stream_.failed_in_handshake() && options_->on_tls_failure)
      options_->on_tls_failure(end, detail);
    return End(end, detail, now);
  }
  const bool cuts = stream_.ended_unannounced() && session_->open_exchanges() > 0;
  if (cuts && options_->on_unannounced_end) options_->on_unannounced_end(detail);
  in_call_ = true;
  session_->OnBroken(detail, now);
  in_call_ = false;
  End(UpstreamConnection::End::kClosed, detail, now);
}

UpstreamConnection::End StreamConnection::ConnectFailure(base::Instant now) const {
  using Why = UpstreamConnection::End;
  if (stream_.distrusts_server()) return Why::kUntrusted;
  if (stream_.failed_in_handshake()) return Why::kTlsFailed;
  return now - began_ >= options_->stream.connect_timeout ? Why::kConnectTimeout
                                                          : Why::kNotConnected;
}

void StreamConnection::Pump(base::Instant now) {
  std::string& output = session_->output();
  if (!output.empty()) {
    if (stream_.output().empty()) {
      stream_.output().swap(output);
    } else {
      stream_.output().append(output);
    }
    output.clear();
  }
  stream_.Flush();
  in_call_ = true;
  session_->OnUnsent(stream_.unsent_bytes(), now);
  in_call_ = false;
  if (session_->output_ended() && session_->output().empty() &&
      !std::exchange(finished_writing_, true))
    stream_.FinishWriting();
  if (CloseIfFinished(now)) return;
  const bool pause = !session_->wants_input();
  if (std::exchange(paused_, pause) != pause)
    pause ? stream_.PauseReading() : stream_.ResumeReading();
  if (session_->free_places() > 0 || session_->finished()) owner_.OnChanged(now);
}

// Output that is not sent yet, such as the last bytes of a tunnel, keeps the connection open.
bool StreamConnection::CloseIfFinished(base::Instant now) {
  if (!session_->finished() || session_->open_exchanges() > 0) return false;
  if (session_->output_ended() && stream_.unsent_bytes() > 0) return true;
  End(UpstreamConnection::End::kClosed, "", now);
  return true;
}

void StreamConnection::End(UpstreamConnection::End end, std::string_view why, base::Instant now) {
  closed_ = true;
  stream_.Close();
  owner_.OnClosed(end, why, now);
}

void StreamConnection::Close(base::Instant now) {
  closed_ = true;
  stream_.Close();
  if (session_ != nullptr) session_->OnBroken("the proxy closed the connection", now);
}

}  // namespace headgate::proxy
