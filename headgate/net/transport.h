// The bytes of one connection, accepted or opened: over TCP or a Unix socket, plain or with TLS.
// Nobody above sees which.
//
// Never blocks. Read, Write and Handshake do what is possible now; after kWouldBlock the caller
// awaits the call's turn and tries again. (With TLS a Read may have to send first, and a Write to
// receive; the transport knows.)
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"
#include "headgate/net/tls_context.h"

namespace headgate::net {

class Transport {
 public:
  // Called on the loop's thread, never from within a call of the transport's. May destroy the
  // transport.
  class Owner {
   public:
    virtual void OnReadable() = 0;  // Read, or Handshake, is worth another try
    virtual void OnWritable() = 0;  // so is Write

   protected:
    ~Owner() = default;
  };

  enum class State : uint8_t { kDone, kWouldBlock, kEnd, kFailed };
  struct Io {
    State state = State::kDone;
    size_t bytes = 0;  // moved; at least one if state is kDone, unless none were asked for
  };

  // Takes a connected, non-blocking socket. `loop` and `owner` must outlive the transport. `tls`:
  // null for plain bytes; it says which side is ours. `server_name`: the name or address that a
  // server's certificate must have.
  static std::unique_ptr<Transport> Make(EventLoop& loop, FileDescriptor socket, Owner& owner,
                                         const TlsContext* tls,
                                         const std::string& server_name = {});

  virtual ~Transport();
  Transport(const Transport&) = delete;

  // Optional: Read and Write make up for it. kDone when the peer has proved who it is; never kEnd.
  virtual Io Handshake() = 0;
  virtual Io Read(std::span<char> buffer) = 0;
  // After kWouldBlock the next Write must begin with the same bytes.
  virtual Io Write(std::string_view bytes) = 0;
  // No more will be written; the peer learns that.
  virtual void FinishWriting() = 0;
  // Why the last call answered kFailed.
  virtual std::string error() const = 0;

  // After kWouldBlock: calls the owner once, when another try is worth it. Asking again before that
  // changes nothing.
  void AwaitRead();   // for Read and Handshake
  void AwaitWrite();  // for Write

 protected:
  enum class Ready : uint8_t { kToRead, kToWrite };

  Transport(EventLoop& loop, FileDescriptor socket, Owner& owner);
  int fd() const { return fd_; }

  // The readiness that the last call of this kind lacked.
  virtual Ready read_needs() const { return Ready::kToRead; }
  virtual Ready write_needs() const { return Ready::kToWrite; }
  // Bytes that were received already, so that no readiness will tell of them.
  virtual bool has_received() const { return false; }

 private:
  struct Watch;

  void OnReady(Ready ready);

  Owner& owner_;
  const int fd_;  // the watch's
  boost::intrusive_ptr<Watch> watch_;
  bool awaits_read_ = false;
  bool awaits_write_ = false;
};

}  // namespace headgate::net
