// A connection that we open: bytes out, bytes in, without waiting. An owner gets the incoming bytes, on the
// loop's thread, and leads the conversation.
//
// Over TCP or a Unix socket, plain or with TLS. A host name is resolved off the loop's thread, and its addresses are
// tried one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/event_loop.h"

namespace headgate::net {

// The address to connect to.
struct StreamTarget {
  std::string host{};  // a name or an address; unused where unix_path is set
  uint16_t port = 0;
  std::string unix_path{};

  bool operator==(const StreamTarget&) const = default;
  std::string ToString() const;
};

struct TlsOptions {
  // Certificates that sign the server's (PEM). Empty: the system's.
  std::string ca_file{};
  // Our own certificate and its key (PEM), where the server asks for them. Both or neither.
  std::string certificate_file{};
  std::string key_file{};
};

// Loaded once, used by many streams.
class TlsContext {
 public:
  // InvalidArgument where a file cannot be used; the message names it.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Load(const TlsOptions& options);
  ~TlsContext();

 private:
  friend class Stream;
  struct State;
  explicit TlsContext(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Stream {
 public:
  // Called on the loop's thread, never from within a call of the stream's. Each may close and reopen the stream; none
  // may destroy it.
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
    std::string server_name{};          // whom the certificate must name; empty: the target's host
    base::Duration connect_timeout = std::chrono::milliseconds(50);  // resolving and the TLS handshake included
  };

  Stream(EventLoop& loop, Owner& owner, const Options& options);
  ~Stream();
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
  struct Life;  // one connection's

  EventLoop& loop_;
  Owner& owner_;
  const Options options_;
  std::shared_ptr<Life> life_;
  std::string output_;
  uint64_t bytes_read_ = 0;
  uint64_t bytes_written_ = 0;
};

}  // namespace headgate::net
