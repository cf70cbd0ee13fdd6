// One request and its response, in parts, in one form for HTTP/1 and HTTP/2. A server's connection
// passes the parts of the request to a RequestReceiver, which answers through a ServerExchange. A
// client's connection takes the request through a ClientExchange, and passes the parts of the
// response to a ResponseReceiver. A proxy connects the two.
//
//   client ──▶ ServerSession ── OnRequest, OnData…, OnEnd ──▶ RequestReceiver
//                            ◀── SendHead, SendData…, SendEnd ──
//
//   ResponseReceiver ── Begin, SendData…, SendEnd ──▶ ClientSession ──▶ server
//                    ◀── OnHead, OnData…, OnEnd ──
//
// Both directions are independent: a response may begin and end before its request has. Each
// direction is 1xx heads (responses only), one head, data, and an end with trailers; or it is
// aborted, which is never taken for an end.
//
// Backpressure: data counts as buffered by the receiver until it has called Consumed for it. A
// connection reads no more for an exchange once kWindowBytes are buffered. In the other direction a
// sender stops while unsent_bytes() is at least kWindowBytes, until OnWritable.
//
// Calls of an exchange never call its receiver: they append output and wake the connection. The
// receiver is called only while the connection processes input, output or its end. A receiver that
// waits for something else asks for a call with CallAgain.
//
// Everything happens on one loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/bounds.h"
#include "headgate/http/message.h"
#include "headgate/net/peer.h"

namespace headgate::http {

// Data that may be buffered in each direction of an exchange.
inline constexpr size_t kWindowBytes = size_t{64} << 10;

// ---- Server

// An application's state for all requests of one connection.
class ConnectionState {
 public:
  virtual ~ConnectionState() = default;
};

// The response of one exchange, and the flow of its request. Valid until the receiver is destroyed.
class ServerExchange {
 public:
  // 100, 103 and other 1xx. A client of HTTP/1.0 does not get it.
  virtual void SendInformational(const ResponseHead& head) = 0;
  // The final head; the body follows unless the request or the status excludes one (HEAD, 204,
  // 304). SendEnd must follow in any case. With kTunnel, it answers a request with `protocol`:
  // status 101, which HTTP/2 turns into 200. From then on both directions carry the tunnel.
  virtual void SendHead(const ResponseHead& head) = 0;
  // For a sized body, all data together must have that size; more stops the process. If there is
  // less at SendEnd, the response is aborted.
  virtual void SendData(std::string_view bytes) = 0;
  // The end of the response; of a tunnel: of this direction. `trailers` are dropped if they cannot
  // be sent: the body is not kUnsized, or the client of HTTP/1 did not accept them.
  virtual void SendEnd(const Fields& trailers) = 0;
  // Gives the response up in the middle, in a way that the client notices.
  virtual void Abort() = 0;

  // This many bytes of OnData are no longer buffered.
  virtual void Consumed(size_t bytes) = 0;
  // Data of SendData that the system has not taken yet.
  virtual size_t unsent_bytes() const = 0;
  // In OnAbort: whether the reason is the body of the request, which violates the protocol.
  virtual bool request_is_malformed() const { return false; }
  // OnCalledAgain of the receiver follows soon, once for all calls until then.
  virtual void CallAgain() = 0;
  // Empty until the application sets it.
  virtual std::unique_ptr<ConnectionState>& connection_state() = 0;

 protected:
  ~ServerExchange() = default;
};

// How long a connection may take for one exchange.
struct Patience {
  enum class For : uint8_t {
    kReceiver,    // the receiver has timeouts of its own
    kRequest,     // the rest of the request: the connection's request timeout, from its head on
    kAnswer,      // the answer, or the next part of it: the request timeout, from `since` on
    kHeldAnswer,  // likewise. The answer is held back on purpose until `since`, and nobody wants it
                  // any more once the client has closed its direction
    kNothing,     // the answer has no end; it ends when the client leaves
  };
  For what = For::kReceiver;
  base::Instant since{};
};

// Receives one request. The session destroys it when both directions have ended, or after OnAbort.
class RequestReceiver {
 public:
  virtual ~RequestReceiver() = default;

  virtual void OnData(std::string_view bytes, base::Instant now) = 0;
  // The request is complete. Called for a request without a body too. In a tunnel: the client has
  // closed its direction.
  virtual void OnEnd(const Fields& trailers, base::Instant now) = 0;
  // The client has gone, has reset the stream, or has sent a body that is invalid. Nothing more can
  // be sent. Called at most once, before the destruction.
  virtual void OnAbort(base::Instant now) = 0;
  // unsent_bytes() has fallen below kWindowBytes again.
  virtual void OnWritable(base::Instant now) = 0;
  // The memory that the consumed data of this request still takes, for example on its way to an
  // upstream. Counts against the buffers of the client's connection.
  virtual size_t HeldBytes() const { return 0; }
  // After ServerExchange::CallAgain.
  virtual void OnCalledAgain(base::Instant /*now*/) {}
  // The connection ends after the exchanges that are open: an answer without an end must end now.
  virtual void OnDrain(base::Instant /*now*/) {}
  virtual Patience patience() const { return {}; }
};

// One per loop.
class Application {
 public:
  virtual ~Application() = default;
  // A request whose head is complete and valid. Never returns null. The receiver may answer within
  // this call. OnEnd or OnAbort follows, also for a request without a body. The session reads the
  // next head into `head`: an application that swaps it with a used one saves the allocations.
  virtual std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& peer,
                                                     ServerExchange& exchange,
                                                     base::Instant now) = 0;
  // The session refuses a request because of its head, for example because it has too many fields.
  // `head` has the method, the target and the fields that were read before. Returns whether
  // `answer` and `body` replace the session's own answer.
  virtual bool AnswerRefusedHead(const RequestHead& /*head*/, const net::Peer& /*peer*/,
                                 const Refusal& /*refusal*/, ResponseHead& /*answer*/,
                                 std::string& /*body*/, base::Instant /*now*/) {
    return false;
  }
};

// ---- Client

// Why there is no complete response. The first three allow another attempt.
enum class Failure : uint8_t {
  kNotSent,   // the server has not processed anything: no connection, REFUSED_STREAM, GOAWAY
  kNoAnswer,  // the connection ended before the first byte of an answer: it may have been processed
  kNoTunnels,  // the server has said that it takes no tunnels; nothing was sent
  kInvalid,    // the answer violates the protocol
  kTruncated,  // the answer ended in the middle, or was reset
};

// The request of one exchange, and the flow of its response. Valid until OnEnd, OnFailed or Cancel.
class ClientExchange {
 public:
  // The body, if the head stated one. The rules of ServerExchange hold.
  virtual void SendData(std::string_view bytes) = 0;
  virtual void SendEnd(const Fields& trailers) = 0;
  // The response is no longer wanted. The receiver is not called again, and the exchange is gone.
  virtual void Cancel() = 0;

  virtual void Consumed(size_t bytes) = 0;
  virtual size_t unsent_bytes() const = 0;

 protected:
  ~ClientExchange() = default;
};

class ResponseReceiver {
 public:
  virtual void OnInformational(const ResponseHead& head, base::Instant now) = 0;
  virtual void OnHead(ResponseHead head, base::Instant now) = 0;
  virtual void OnData(std::string_view bytes, base::Instant now) = 0;
  // The response is complete. If the request is not, the rest of it is no longer wanted. In a
  // tunnel: the server has closed its direction; the exchange is gone once both have ended.
  virtual void OnEnd(const Fields& trailers, base::Instant now) = 0;
  // Instead of OnEnd. `detail` says what happened, for the log.
  virtual void OnFailed(Failure failure, std::string_view detail, base::Instant now) = 0;
  virtual void OnWritable(base::Instant now) = 0;

 protected:
  ~ResponseReceiver() = default;
};

}  // namespace headgate::http
