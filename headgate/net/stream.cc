#include "headgate/net/stream.h"

#include <fmt/format.h>

#include <utility>

#include "headgate/net/output_buffer.h"

namespace headgate::net {
namespace {

// The size of one read. A thousand pipelined replies fit.
constexpr size_t kReadBytesMax = size_t{64} << 10;
}  // namespace

Stream::Stream(EventLoop& loop, Owner& owner, const Options& options)
    : loop_(loop), owner_(owner), options_(options), deadline_(loop, [this] { OnDeadline(); }) {}

void Stream::Connect(const StreamTarget& target) {
  Close();
  target_ = target;
  distrusts_server_ = failed_in_handshake_ = ended_unannounced_ = false;
  paused_ = input_ended_ = finishes_ = broken_ = false;
  state_ = State::kConnecting;
  deadline_.Set(loop_.Now() + options_.connect_timeout);
  connector_ = std::make_unique<Connector>(
      loop_, target_,
      [this](absl::StatusOr<FileDescriptor> socket) { OnSocket(std::move(socket)); });
}

void Stream::Close() {
  ++connection_;
  state_ = State::kClosed;
  deadline_.Cancel();
  connector_.reset();
  transport_.reset();
  output_.clear();
  writing_.clear();
  written_ = 0;
}

void Stream::OnSocket(absl::StatusOr<FileDescriptor> socket) {
  if (!socket.ok())
    return Fail(
        std::string_view(socket.status().message().data(), socket.status().message().size()));
  const std::string& name = options_.server_name.empty() ? target_.host : options_.server_name;
  transport_ = Transport::Make(loop_, *std::move(socket), *this, options_.tls, name);
  connector_.reset();
  state_ = State::kHandshaking;
  ContinueHandshake();
}

void Stream::ContinueHandshake() {
  switch (transport_->Handshake().state) {
    case Transport::State::kWouldBlock:
      return transport_->AwaitRead();
    case Transport::State::kEnd:
    case Transport::State::kFailed:
      distrusts_server_ = transport_->distrusts_peer();
      failed_in_handshake_ = options_.tls != nullptr;
      return Fail(transport_->error());
    case Transport::State::kDone:
      break;
  }
  deadline_.Cancel();
  state_ = State::kOpen;
  input_.resize(kReadBytesMax);
  const uint64_t connection = connection_;
  owner_.OnConnected();
  if (connection == connection_ && !paused_) transport_->AwaitRead();
}

void Stream::OnDeadline() {
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(options_.connect_timeout).count();
  if (state_ == State::kConnecting) {
    return Fail(connector_->resolving()
                    ? fmt::format("no address for the name {} within {} ms", target_.host, ms)
                    : fmt::format("no connection within {} ms", ms));
  }
  Fail(
      fmt::format("it accepted the connection, but no TLS handshake came within {} ms; does it "
                  "speak TLS on this port?",
                  ms));
}

void Stream::OnReadable() {
  if (state_ != State::kOpen) return ContinueHandshake();
  if (broken_) return Fail(transport_->error());
  if (!paused_ && !input_ended_) Read();
}

bool Stream::ReadNow() {
  if (state_ != State::kOpen || broken_ || paused_ || input_ended_) return false;
  const uint64_t before = bytes_read_;
  Read();
  return bytes_read_ != before;
}

void Stream::ResumeReading() {
  if (!std::exchange(paused_, false)) return;
  if (state_ == State::kOpen && !input_ended_) transport_->AwaitRead();
}

void Stream::Read() {
  const Transport::Io io = transport_->Read(input_);
  switch (io.state) {
    case Transport::State::kWouldBlock:
      return transport_->AwaitRead();
    case Transport::State::kEnd:
      return OnInputEnd();
    case Transport::State::kFailed:
      ended_unannounced_ = transport_->ended_unannounced();
      return Fail(transport_->error());
    case Transport::State::kDone:
      break;
  }
  bytes_read_ += io.bytes;
  const uint64_t connection = connection_;
  owner_.OnBytes(std::string_view(input_.data(), io.bytes));
  if (connection == connection_ && !paused_) transport_->AwaitRead();
}

void Stream::OnInputEnd() {
  input_ended_ = true;
  const uint64_t connection = connection_;
  const bool stays_open = owner_.OnInputEnd();
  if (connection == connection_ && !stays_open) Fail("the other end closed the connection");
}

void Stream::OnWritable() {
  const size_t unsent = unsent_bytes();
  const uint64_t connection = connection_;
  Flush();
  if (connection == connection_ && unsent_bytes() < unsent) owner_.OnUnsent();
}

void Stream::FinishWriting() {
  finishes_ = true;
  Flush();
}

// A read will report that the connection is gone. If the input has already ended, OnReadable
// reports it.
void Stream::OnWriteError() {
  if (!input_ended_ || std::exchange(broken_, true)) return;
  transport_->AwaitRead();
}

void Stream::Flush() {
  while (state_ == State::kOpen && !(writing_.empty() && output_.empty())) {
    if (writing_.empty()) writing_.swap(output_);
    const Transport::Io io = transport_->Write(std::string_view(writing_).substr(written_));
    if (io.state == Transport::State::kWouldBlock) return transport_->AwaitWrite();
    if (io.state != Transport::State::kDone) return OnWriteError();
    bytes_written_ += io.bytes;
    written_ += io.bytes;
    if (written_ < writing_.size()) continue;
    ReleaseBuffer(writing_);
    written_ = 0;
  }
  if (state_ == State::kOpen && std::exchange(finishes_, false)) transport_->FinishWriting();
}

size_t Stream::unsent_bytes() const {
  return state_ == State::kClosed ? 0 : output_.size() + writing_.size() - written_;
}

void Stream::Fail(std::string_view why) {
  const absl::Status status =
      absl::UnavailableError(fmt::format("{}: {}", target_.ToString(), why));
  Close();
  owner_.OnClosed(status);
}

}  // namespace headgate::net
