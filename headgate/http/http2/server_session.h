// The server's side of an HTTP/2 connection: each stream is an http::ServerExchange. By prior
// knowledge or after ALPN; the bytes are the same.
//
//   HEADERS ─▶ RequestHeadReader ─▶ Application::OnRequest
//                  └─ malformed ─▶ RST_STREAM; nothing reaches the application
//   DATA ─▶ OnData … Consumed ─▶ WINDOW_UPDATE
//   SendHead, SendData, SendEnd ─▶ HEADERS, DATA, END_STREAM
//
// If a response ends before its request, the receiver gets OnAbort at once, and the stream lingers.
// The rest of the request is read and dropped, so that a client that sends all of it first still
// finds its answer. RST_STREAM(NO_ERROR) ends a request that is longer or slower than ServerOptions
// allows.
//
// A request with `protocol` has no end until it is answered: after 101, its receiver gets the data
// of the tunnel; after another answer, OnEnd.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http2/endpoint.h"
#include "headgate/http/http2/flood_guard.h"
#include "headgate/http/http2/head_reader.h"
#include "headgate/net/peer.h"
#include "headgate/net/session.h"

namespace headgate::http::http2 {

struct ServerOptions {
  uint32_t streams_max = 100;  // of one connection. Raise it for proxies with very many clients
  HeadBounds bounds{};
  // A connection is not read while this much of its output is unsent.
  size_t unsent_bytes_max = size_t{1} << 20;
  // How much of a request, and for how long, is read after its answer. Many clients lose the answer
  // if RST_STREAM arrives while they send. Raise both for clients that send everything first.
  size_t linger_bytes_max = size_t{1} << 20;
  base::Duration linger_timeout = std::chrono::seconds(2);
  // A stream whose receiver has no timeouts of its own (Patience) is reset after this time. Zero if
  // all receivers have.
  base::Duration request_timeout{0};
  // Whether a handler answers, so nothing is passed on. Then a refused head is answered as over
  // HTTP/1, also if it is malformed, and does not count as a flood: the connection may be that of a
  // proxy with many clients. Methods with lower-case letters and unusual hosts reach the handler.
  bool for_handlers = false;
  // Further fields that must not be in trailers, because they mean something to the application:
  // the one with the client's id, for example.
  std::vector<std::string> never_in_trailers{};
};

class ServerStream;

class ServerSession final : public net::Session, private Endpoint::Events {
 public:
  // All references must outlive the session, which is used on the thread that created it.
  ServerSession(Application& application, const ServerOptions& options, const net::Peer& peer,
                Counters& counters);
  ~ServerSession() override;

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }
  bool duplex() const override { return true; }
  void OnUnsent(size_t bytes, base::Instant now) override;
  bool OnInputEnd(base::Instant now) override;
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;
  size_t BufferedBytes() const override;
  void OnDrain() override;

 private:
  friend class ServerStream;

  void OnBlock(int32_t id) override;
  bool OnField(int32_t id, std::string_view name, std::string_view value) override;
  void OnBlockEnd(int32_t id, bool ends_stream) override;
  void OnData(int32_t id, std::string_view bytes) override;
  void OnStreamEnd(int32_t id) override;
  void OnPeerReset(int32_t id) override;
  void OnSent(int32_t id, bool ends_stream) override;
  void OnRoom(int32_t id) override;
  void OnClosed(int32_t id, ErrorCode error) override;
  void OnPingAnswered() override { endpoint_.FinishDrain(); }
  void AfterFrame() override { Notify(); }

  ServerStream* Find(int32_t id) const { return static_cast<ServerStream*>(endpoint_.OwnerOf(id)); }
  void OnRequestHead(ServerStream& stream, bool ends_stream);
  void OnRequestEnd(ServerStream& stream, const Fields& trailers);
  // Answers for the application.
  void Answer(ServerStream& stream, const Refusal& refusal);
  // Sends, and tells receivers about new room, until nothing changes.
  void Send(std::string& output);
  // Tells receivers about the events since the last call.
  void Notify();
  void NotifyReady(ServerStream& stream);
  // Destroys the receiver of the stream. Returns how much data it has not consumed.
  size_t Part(ServerStream& stream);
  // Data for nobody.
  void Drop(ServerStream& stream, size_t bytes);
  // Resets the streams whose request or answer takes longer than the request timeout.
  void GiveUpSlow();
  // The time at which the stream is too slow, unless it makes progress. It is checked again then.
  base::Instant DueOf(ServerStream& stream) const;
  std::optional<base::Instant> CallAt();
  // Resets the streams that have lingered for long enough.
  void EndLingering();
  void Close(ServerStream& stream);
  void AbortAll();
  // Output has been submitted outside of OnBytes.
  void Wake();

  Application& application_;
  const ServerOptions& options_;
  const net::Peer peer_;
  Counters& counters_;
  std::function<void()> wake_;
  Endpoint endpoint_;
  RequestHeadReader head_reader_;
  TrailerReader trailer_reader_;
  std::vector<std::unique_ptr<ServerStream>> streams_;  // open, in any order
  std::vector<std::unique_ptr<ServerStream>> closed_;   // their receivers do not know yet
  std::vector<int32_t> ready_;                          // streams with a call for their receivers
  std::vector<int32_t> lingering_;                      // the first one ends first
  std::unique_ptr<ConnectionState> connection_state_;
  static constexpr base::Instant kNever = base::Instant::FromNanos(INT64_MAX);
  base::Instant next_timeout_ = kNever;  // no stream is too slow before
  base::Instant now_{};
  uint64_t answered_ = 0;
  size_t buffered_ = 0;  // data that receivers have not consumed
  bool in_call_ = false;
  bool draining_ = false;  // until the client has seen the notice, and its streams have ended
  bool stopped_ = false;   // reading, because of unsent output
};

}  // namespace headgate::http::http2
