// A connection that we open: bytes out, bytes in, without waiting. An owner gets the incoming
// bytes, on the loop's thread, and leads the conversation.
//
// Over any transport: TCP or a Unix socket, plain or with TLS. A host name is resolved off the
// loop's thread, and its addresses are tried one after the other.
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
  // Called on the loop's thread, never from within a call of the stream's. Each may close and
  // reopen the stream; none may destroy it.
  class Owner {
   public:
    virtual void OnConnected() = 0;
    virtual void OnBytes(std::string_view bytes) = 0;
    // It could not connect, or the connection ended. Not called after Close.
    virtual void OnClosed(const absl::Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  struct Options {
    std::shared_ptr<TlsContext> tls{};  // null: plain
    std::string server_name{};  // the name that the certificate must have; empty: the target's host
    base::Duration connect_timeout =
        std::chrono::milliseconds(50);  // resolving and the TLS handshake included
  };

  Stream(EventLoop& loop, Owner& owner, const Options& options);
  ~Stream() { Close(); }
  Stream(const Stream&) = delete;

  // Closes what was open before.
  void Connect(const StreamTarget& target);
  // Forgets what is under way; the owner hears nothing of it.
  void Close();

  // Append here, then Flush. Emptied by Close.
  std::string& output() { return output_; }
  // Sends what output() holds; what the other end does not take yet follows when it does.
  void Flush();
  // Bytes given to Flush that the system has not taken.
  size_t unsent_bytes() const;

  // Over all of its connections.
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  enum class State : uint8_t { kClosed, kConnecting, kHandshaking, kOpen };

  void OnSocket(absl::StatusOr<FileDescriptor> socket);
  void OnReadable() override;
  void OnWritable() override { Flush(); }
  void OnDeadline();
  void ContinueHandshake();
  void Read();
  void Fail(std::string_view why);

  EventLoop& loop_;
  Owner& owner_;
  const Options options_;
  StreamTarget target_;
  State state_ = State::kClosed;
  uint64_t connection_ =
      0;  // a number for each, so that a call sees if the owner has closed or reopened meanwhile
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Transport> transport_;
  Timer deadline_;
  std::vector<char> input_;
  std::string output_;
  std::string writing_;  // what the system has not taken yet
  size_t written_ = 0;   // of `writing_`
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace headgate::net
