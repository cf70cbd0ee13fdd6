// Serves the exchanges of connections by a Handler, for HTTP/1 and HTTP/2.
//
//   head ──▶ body, collected ──▶ Handler::Handle ──▶ head, body, end
//                                  │      ▲
//                                  └ later ┘ after `wake`
//
// The body of a response is sent as the client takes it. One application serves all connections of
// a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/http/exchange.h"
#include "headgate/http/handler.h"
#include "headgate/http/known_hosts.h"

namespace headgate::http {

struct HandlerOptions {
  // The most bytes of content in a request. A session of HTTP/1 that has the same bound refuses a
  // larger body as soon as it has read the head.
  uint64_t body_bytes_max = Bounds{}.body_bytes_max;
  KnownHosts hosts{};
  // For Date, which is the time of day, also after that has been set; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

class HandlerApplication final : public Application {
 public:
  // The largest part that is requested from a source.
  static constexpr size_t kPartBytesMax = kWindowBytes;

  // `handler` and `options` must outlive the application, which must outlive its exchanges.
  HandlerApplication(Handler& handler, const HandlerOptions& options);
  ~HandlerApplication() override;

  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& peer,
                                             ServerExchange& exchange, base::Instant now) override;
  bool AnswerRefusedHead(const RequestHead& head, const net::Peer& peer, const Refusal& refusal,
                         ResponseHead& answer, std::string& body, base::Instant now) override;

 private:
  class HandledRequest;
  // At most this many ended requests are kept, with their memory, for later ones.
  static constexpr size_t kKeptMax = 64;

  // `request` has ended.
  void Keep(HandledRequest* request);
  // Why the head is refused before any of the body is read.
  Refusal Judge(const Request& request, const RequestHead& head) const;
  void AddDate(Fields& fields, base::Instant now) const;

  Handler& handler_;
  const HandlerOptions& options_;
  std::vector<HandledRequest*> kept_;
};

}  // namespace headgate::http
