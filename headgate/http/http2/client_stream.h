// One exchange of a ClientSession. Internal to http2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/http/exchange.h"
#include "headgate/http/http2/head_reader.h"
#include "headgate/http/http2/outgoing_body.h"

namespace headgate::http::http2 {

class ClientSession;

class ClientStream final : public ClientExchange {
 public:
  ClientStream(ClientSession& session, ResponseReceiver& receiver)
      : session_(session), receiver_(&receiver) {}

  void SendData(std::string_view bytes) override;
  void SendEnd(const Fields& trailers) override;
  void Cancel() override;
  void Consumed(size_t bytes) override;
  size_t unsent_bytes() const override { return body_.size(); }

 private:
  friend class ClientSession;

  ClientSession& session_;
  ResponseReceiver* receiver_;              // null: it is not called again
  int32_t id_ = 0;                          // 0: not open yet
  std::unique_ptr<RequestHead> waiting_{};  // of a tunnel, until the server's settings are known
  OutgoingBody body_;
  size_t index_ = 0;     // in the session's list
  size_t buffered_ = 0;  // data that the receiver has not consumed
  ResponseHeadReader::Request request_;
  int informational_ = 0;  // how many heads

  bool bodiless_ = false;  // HEADERS end the request
  bool sent_ = false;      // HEADERS are in the output
  bool ended_ = false;     // SendEnd was called
  bool end_sent_ = false;  // END_STREAM is in the output
  bool answered_ = false;  // OnHead was called
  bool tunnel_ = false;
  bool complete_ = false;       // the response has ended
  bool short_request_ = false;  // the request ended before its length
  bool peer_reset_ = false;
  bool has_room_ = false;  // OnWritable is due
  bool closed_ = false;    // nghttp2 has forgotten the stream
  Failure failure_ = Failure::kNoAnswer;
  std::string_view detail_{};  // describes the failure; has static lifetime
};

}  // namespace headgate::http::http2
