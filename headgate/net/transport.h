// The bytes of one connection, accepted or outgoing, over TCP or a Unix socket, plain or with TLS.
// Callers need not know which.
//
// Never blocks. Read, Write and Handshake do as much as possible now. After kWouldBlock the caller
// calls AwaitRead or AwaitWrite, and tries again when the owner is called. (With TLS, a Read may
// have to send first, and a Write to receive; the transport handles this.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/peer.h"
#include "headgate/net/socket_poller.h"
#include "headgate/net/tls_context.h"

namespace headgate::net {

class Transport : private SocketPoller::Socket {
 public:
  // Called on the loop's thread, never from within a call of the transport. May destroy the
  // transport.
  class Owner {
   public:
    virtual void OnReadable() = 0;  // retry Read or Handshake
    virtual void OnWritable() = 0;  // retry Write

   protected:
    ~Owner() = default;
  };

  enum class State : uint8_t { kDone, kWouldBlock, kEnd, kFailed };
  struct Io {
    State state = State::kDone;
    // Bytes transferred; at least one if state is kDone, unless none were requested.
    size_t bytes = 0;
  };

  // Takes a connected, non-blocking socket. `loop` and `owner` must outlive the transport. `tls` is
  // null for plain connections; it also decides between client and server side. `server_name` is
  // the name or address that a server's certificate must have.
  static std::unique_ptr<Transport> Make(EventLoop& loop, FileDescriptor socket, Owner& owner,
                                         std::shared_ptr<const TlsContext> tls,
                                         const std::string& server_name = {});

  virtual ~Transport();
  Transport(const Transport&) = delete;

  // Optional: Read and Write do it if necessary. kDone when the handshake is complete; never kEnd.
  virtual Io Handshake() = 0;
  // Whether the handshake is complete. A plain connection has none.
  virtual bool established() const { return true; }
  // The memory that an incomplete handshake takes, estimated; 0 before the peer has sent anything.
  virtual size_t handshake_bytes() const { return 0; }
  // Once the handshake is complete: adds the agreed protocol and the name in a verified certificate
  // to `peer`.
  virtual void Describe(Peer& /*peer*/) const {}
  virtual Io Read(std::span<char> buffer) = 0;
  // After kWouldBlock, the next Write must begin with the same bytes.
  virtual Io Write(std::string_view bytes) = 0;
  // Signals the peer that no more will be written.
  virtual void FinishWriting() = 0;
  // From now on, the end of the transport resets the connection. A Unix socket only closes.
  void ResetAtEnd();
  // Why the last call returned kFailed.
  virtual std::string error() const = 0;
  // Whether that was because the peer's certificate is not trusted, or has another name.
  virtual bool distrusts_peer() const { return false; }
  // Whether that was because the server closed the connection without a TLS close_notify.
  virtual bool ended_unannounced() const { return false; }

  // After kWouldBlock: calls the owner once, when a retry makes sense. Repeated calls before that
  // have no effect.
  void AwaitRead();   // for Read and Handshake
  void AwaitWrite();  // for Write
  // Instead of AwaitRead: calls OnReadable once the peer has closed its end or the connection is
  // broken, whether or not bytes that arrived before have been read.
  void AwaitEnd();

 protected:
  enum class Ready : uint8_t { kToRead, kToWrite };

  Transport(EventLoop& loop, FileDescriptor socket, Owner& owner);
  int fd() const { return socket_.get(); }
  // Receives from the socket like recv(2), and notes whether more may be there.
  ssize_t Receive(std::span<char> buffer, int flags = 0);
  // Whether the socket may have input, or its end, that Receive has not returned yet. If not, an
  // event will announce the next.
  bool has_input() const { return has_input_; }

  // The readiness that the last call of this kind was waiting for.
  virtual Ready read_needs() const { return Ready::kToRead; }
  virtual Ready write_needs() const { return Ready::kToWrite; }
  // Whether received bytes are buffered already, so that no readiness event will announce them.
  virtual bool has_received() const { return false; }

 private:
  void OnEvents(uint32_t events) override;
  // Whether the transport still exists afterwards.
  bool OnReady(Ready ready);
  void Await(Ready ready);

  SocketPoller& poller_;
  Owner& owner_;
  const FileDescriptor socket_;
  bool awaits_read_ = false;
  bool awaits_write_ = false;
  bool awaits_end_ = false;
  bool has_input_ = true;
  bool input_ended_ = false;   // the end may follow the input that is there
  const bool may_stop_short_;  // a read may return less than there is
  bool* gone_ = nullptr;       // set by the destructor
};

}  // namespace headgate::net
