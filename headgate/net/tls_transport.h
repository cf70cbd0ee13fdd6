// TLS over a socket, as client or server. Internal to net: other folders use Transport.
#pragma once

#include <memory>
#include <string>

#include "headgate/net/client_hello_bound.h"
#include "headgate/net/transport.h"

struct bio_st;
struct ssl_st;

namespace headgate::net {

class TlsTransport final : public Transport {
 public:
  TlsTransport(EventLoop& loop, FileDescriptor socket, Owner& owner,
               std::shared_ptr<const TlsContext> context, const std::string& server_name);
  ~TlsTransport() override;

  Io Handshake() override;
  bool established() const override;
  size_t handshake_bytes() const override;
  void Describe(Peer& peer) const override;
  Io Read(std::span<char> buffer) override;
  Io Write(std::string_view bytes) override;
  void FinishWriting() override;
  std::string error() const override { return error_; }
  bool distrusts_peer() const override;
  bool ended_unannounced() const override { return ended_unannounced_; }

 protected:
  Ready read_needs() const override { return read_needs_; }
  Ready write_needs() const override { return write_needs_; }
  bool has_received() const override;

 private:
  // OpenSSL's access to the socket. OpenSSL's own socket functions would raise SIGPIPE if the peer
  // is gone.
  struct Socket;

  // Whether OpenSSL may read. A server waits for the client's first byte, because OpenSSL allocates
  // buffers when it begins.
  bool MayBegin();
  // Translates the result of an OpenSSL call.
  Io Result(int returned, Ready& needs);
  void ExpectServer(const std::string& name);
  Alpn alpn() const;
  static void OnMessage(int is_written, int version, int type, const void* bytes, size_t size,
                        ssl_st* ssl, void* transport);

  const std::shared_ptr<const TlsContext> context_;
  ssl_st* const ssl_;
  size_t receive_budget_ = 0;  // bytes that this call may still receive
  int key_updates_ = 0;        // since the last data
  ClientHelloBound hello_;     // of a server
  bool has_begun_ = false;     // the client has sent something, or its end
  bool hello_over_ = false;    // the server has answered, and expects no other ClientHello
  bool hello_too_long_ = false;
  bool input_ended_ = false;
  bool close_notified_ = false;
  bool ended_unannounced_ = false;
  bool wants_input_ = false;  // the last call used up all received bytes
  bool is_over_ = false;      // the next read returns the end, or why the connection failed
  Ready read_needs_ = Ready::kToRead;
  Ready write_needs_ = Ready::kToWrite;
  std::string error_;
};

}  // namespace headgate::net
