// The client's side of an HTTP/2 connection: as many exchanges as the server allows. Nothing waits
// inside: free_places() is 0 if the server would not take another stream.
//
//   Begin, SendData, SendEnd ─▶ HEADERS, DATA, END_STREAM
//   HEADERS ─▶ ResponseHeadReader ─▶ OnInformational, OnHead
//       └─ invalid ─▶ RST_STREAM, OnFailed(kInvalid)
//   DATA ─▶ OnData … Consumed ─▶ WINDOW_UPDATE
//
// After an invalid response the other exchanges complete normally, but no new one begins. After
// many cancelled exchanges the session is worn(): a server may take them for a flood and end the
// connection, with all its exchanges. The owner decides whether to retire it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/http/client_session.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http2/endpoint.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/head_reader.h"

namespace headgate::http::http2 {

struct ClientOptions {
  uint32_t streams_max = 100;  // of one connection, even if the server takes more
  HeadBounds bounds{};
  // A connection is not read while this much of its output is unsent.
  size_t unsent_bytes_max = size_t{1} << 20;
};

class ClientStream;

class ClientSession final : public http::ClientSession, private Endpoint::Events {
 public:
  // Both must outlive the session.
  ClientSession(const ClientOptions& options, Counters& counters);
  // All exchanges must have ended or been cancelled.
  ~ClientSession() override;

  size_t free_places() const override;
  bool finished() const override;
  size_t open_exchanges() const override { return open_; }
  bool worn() const override { return worn_; }
  void Retire() override;
  ClientExchange& Begin(const RequestHead& head, ResponseReceiver& receiver,
                        base::Instant now) override;
  void OnBytes(std::string_view bytes, base::Instant now) override;
  void OnInputEnd(base::Instant now) override;
  void OnBroken(std::string_view why, base::Instant now) override;
  std::string& output() override;
  void OnUnsent(size_t bytes, base::Instant now) override;
  bool wants_input() const override { return !stopped_; }
  bool output_ended() const override { return false; }
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }

 private:
  friend class ClientStream;

  void OnBlock(int32_t id) override;
  bool OnField(int32_t id, std::string_view name, std::string_view value) override;
  void OnBlockEnd(int32_t id, bool ends_stream) override;
  void OnData(int32_t id, std::string_view bytes) override;
  void OnStreamEnd(int32_t id) override;
  void OnPeerReset(int32_t id) override;
  void OnSent(int32_t id, bool ends_stream) override;
  void OnRoom(int32_t id) override;
  void OnClosed(int32_t id, ErrorCode error) override;
  void OnSettings() override;
  void OnGoaway() override { going_away_ = true; }
  void AfterFrame() override { Notify(); }

  ClientStream* Find(int32_t id) const { return static_cast<ClientStream*>(endpoint_.OwnerOf(id)); }
  void Open(ClientStream& stream, const RequestHead& head);
  void OnResponseHead(ClientStream& stream, bool ends_stream);
  void OnResponseEnd(ClientStream& stream, const Fields& trailers);
  // Resets the stream. Its exchange fails with kInvalid.
  void Refuse(ClientStream& stream, std::string_view detail);
  // Resets a stream that is not wanted any more.
  void Abandon(ClientStream& stream, ErrorCode error);
  // Takes the stream from nghttp2, and remembers why.
  void Close(ClientStream& stream, Failure failure, std::string_view detail);
  // Ends all exchanges, because the connection has ended.
  void FailAll(std::string_view detail);
  // Sends, and tells receivers about events, until nothing changes.
  void Settle();
  void Notify();
  // Takes the receiver from the stream, so that it is not called again.
  ResponseReceiver* Detach(ClientStream& stream);
  void Wake();
  void NoteBacklog();

  const ClientOptions& options_;
  std::function<void()> wake_;
  Endpoint endpoint_;
  ResponseHeadReader head_reader_;
  TrailerReader trailer_reader_;
  std::vector<std::unique_ptr<ClientStream>> streams_;  // open, in any order
  std::vector<std::unique_ptr<ClientStream>> closed_;   // their receivers do not know yet
  std::vector<int32_t> ready_;                          // streams with a call for their receivers
  size_t open_ = 0;                                     // streams with a receiver
  std::string output_;
  base::Instant now_{};
  base::Instant abandoned_full_at_{};  // see TakeFrom
  bool settings_seen_ = false;
  bool going_away_ = false;
  bool distrusted_ = false;  // the server has sent an invalid response
  bool worn_ = false;        // too many streams were abandoned
  bool retired_ = false;     // by the owner
  bool broken_ = false;
  bool in_call_ = false;
  bool stopped_ = false;  // reading, because of unsent output
};

}  // namespace headgate::http::http2
