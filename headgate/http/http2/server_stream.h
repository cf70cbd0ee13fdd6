// One exchange of a ServerSession. Internal to http2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http2/outgoing_body.h"

namespace headgate::http::http2 {

class ServerSession;

class ServerStream final : public ServerExchange {
 public:
  ServerStream(ServerSession& session, int32_t id, base::Instant now)
      : session_(session), id_(id), began_(now) {}

  void SendInformational(const ResponseHead& head) override;
  void SendHead(const ResponseHead& head) override;
  void SendData(std::string_view bytes) override;
  void SendEnd(const Fields& trailers) override;
  void Abort() override;
  void Consumed(size_t bytes) override;
  size_t unsent_bytes() const override { return body_.size(); }
  bool request_is_malformed() const override { return malformed_; }
  void CallAgain() override;
  std::unique_ptr<ConnectionState>& connection_state() override;

 private:
  friend class ServerSession;

  // Whether sending still has an effect.
  bool writable() const { return !closed_ && !aborted_; }
  bool receives() const { return receiver_ != nullptr && !aborted_ && !closed_; }

  ServerSession& session_;
  const int32_t id_;
  const base::Instant began_;
  std::unique_ptr<RequestReceiver> receiver_;
  OutgoingBody body_;
  size_t index_ = 0;     // in the session's list
  size_t buffered_ = 0;  // data that the receiver has not consumed

  // The request.
  bool head_read_ = false;
  bool wants_tunnel_ = false;
  bool is_head_ = false;        // the method
  bool request_ended_ = false;  // END_STREAM has arrived
  bool end_told_ = false;       // OnEnd was called
  bool peer_reset_ = false;     // RST_STREAM has arrived
  bool malformed_ = false;      // it was reset because it violates the protocol
  std::string early_{};         // data of a tunnel before the answer

  // The response.
  bool answered_ = false;  // SendHead was called
  bool tunnel_ = false;
  bool bodiless_ = false;     // HEADERS end the response
  bool ended_ = false;        // SendEnd was called
  bool end_sent_ = false;     // END_STREAM has been sent
  bool aborted_ = false;      // by the application
  bool has_room_ = false;     // OnWritable is due
  bool calls_again_ = false;  // OnCalledAgain is due
  bool closed_ = false;       // nghttp2 has forgotten the stream

  // Bytes of the response that the client had taken at the last check, and the time since which it
  // takes nothing.
  uint64_t taken_before_ = 0;
  std::optional<base::Instant> takes_nothing_since_{};

  // The rest of the request after the response.
  bool lingers_ = false;
  base::Instant lingers_until_{};
  size_t dropped_ = 0;  // bytes
};

}  // namespace headgate::http::http2
