// An outgoing connection with non-blocking reads and writes. An owner receives the incoming bytes
// on the loop's thread and drives the protocol.
//
// Uses any transport: TCP or a Unix socket, plain or with TLS. A host name is resolved on another
// thread, and its addresses are tried one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/connector.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/transport.h"

namespace headgate::net {

class Stream final : private Transport::Owner {
 public:
  // Called on the loop's thread, never from within a call of the stream. Each function may close
  // and reopen the stream; none may destroy it.
  class Owner {
   public:
    virtual void OnConnected() = 0;
    virtual void OnBytes(std::string_view bytes) = 0;
    // The stream could not connect, or the connection ended. Not called after Close.
    virtual void OnClosed(const absl::Status& why) = 0;
    // The other end has closed its direction. Returns whether the stream stays open, to send more.
    virtual bool OnInputEnd() { return false; }
    // unsent_bytes() has fallen since a Flush that could not send everything.
    virtual void OnUnsent() {}

   protected:
    ~Owner() = default;
  };

  struct Options {
    std::shared_ptr<TlsContext> tls{};  // null: plain
    std::string server_name{};  // the name required in the certificate; empty: the target's host
    // Includes name resolution and the TLS handshake.
    base::Duration connect_timeout{0};  // positive
  };

  Stream(EventLoop& loop, Owner& owner, const Options& options);
  ~Stream() { Close(); }
  Stream(const Stream&) = delete;

  // The certificates for the next connection.
  void UseTls(std::shared_ptr<TlsContext> tls) { options_.tls = std::move(tls); }
  // Closes an existing connection first.
  void Connect(const StreamTarget& target);
  // Aborts everything in progress; the owner is not notified.
  void Close();

  // Append here, then call Flush. Close empties it.
  std::string& output() { return output_; }
  // Sends the contents of output(). Bytes that the peer does not take yet are sent later.
  void Flush();
  // Once all output is sent, closes this end's direction. Nothing may be appended afterwards.
  void FinishWriting();
  // Bytes of the other end wait in the system until ResumeReading. Connect resumes.
  void PauseReading() { paused_ = true; }
  void ResumeReading();
  // Reads the bytes that have arrived, without waiting for an event of the loop, and passes them to
  // the owner. Returns whether there was anything.
  bool ReadNow();
  // Whether the last connection ended because the server's certificate is not trusted, or has
  // another name.
  bool distrusts_server() const { return distrusts_server_; }
  // Whether it ended by a failure of the TLS handshake, for whatever reason.
  bool failed_in_handshake() const { return failed_in_handshake_; }
  // Whether it ended without a TLS close_notify, so that the last bytes may be missing.
  bool ended_unannounced() const { return ended_unannounced_; }

  // Bytes passed to Flush that the system has not taken yet.
  size_t unsent_bytes() const;

  // Summed over all connections of this stream.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  enum class State : uint8_t { kClosed, kConnecting, kHandshaking, kOpen };

  void OnSocket(absl::StatusOr<FileDescriptor> socket);
  void OnReadable() override;
  void OnWritable() override;
  void OnDeadline();
  void ContinueHandshake();
  void Read();
  void OnInputEnd();
  void OnWriteError();
  void Fail(std::string_view why);

  EventLoop& loop_;
  Owner& owner_;
  Options options_;
  StreamTarget target_;
  State state_ = State::kClosed;
  bool distrusts_server_ = false;
  bool failed_in_handshake_ = false;
  bool ended_unannounced_ = false;
  bool paused_ = false;
  bool input_ended_ = false;
  bool finishes_ = false;  // once everything is sent
  bool broken_ = false;    // a write failed after the input had ended
  // A number for each connection. It shows whether the owner has closed or reopened the stream
  // during a call.
  uint64_t connection_ = 0;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Transport> transport_;
  Timer deadline_;
  std::vector<char> input_;
  std::string output_;
  std::string writing_;  // not taken by the system yet
  size_t written_ = 0;   // bytes of `writing_`
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace headgate::net
