// The client's side of one connection without its socket: bytes in, bytes out, time as an argument.
// HTTP/1 (http1/client_session.h) has one exchange at a time, HTTP/2 (http2/client_session.h) many.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/exchange.h"

namespace headgate::http {

class ClientSession {
 public:
  virtual ~ClientSession() = default;

  // How many more exchanges may begin now; 0 if the connection is no longer usable.
  virtual size_t free_places() const = 0;
  // Whether it accepts no more exchanges, ever. The owner closes it when open_exchanges() is 0.
  virtual bool finished() const = 0;
  virtual size_t open_exchanges() const = 0;
  // Whether the server may soon end the connection, and with it the exchanges of others, because
  // many were cancelled.
  virtual bool worn() const { return false; }
  // Begins no more exchanges, so it is finished(). Open exchanges continue.
  virtual void Retire() {}

  // Begins an exchange; requires free_places() > 0. SendEnd must follow, also if there is no body.
  // `receiver` must live until OnEnd, OnFailed or Cancel.
  virtual ClientExchange& Begin(const RequestHead& head, ResponseReceiver& receiver,
                                base::Instant now) = 0;

  // Takes all of `bytes`. Calls receivers.
  virtual void OnBytes(std::string_view bytes, base::Instant now) = 0;
  // The server has closed its direction, or the connection is broken (`why`). Calls receivers.
  virtual void OnInputEnd(base::Instant now) = 0;
  virtual void OnBroken(std::string_view why, base::Instant now) = 0;

  // Output for the owner to send, after each call of this session or of its exchanges. `wake` is
  // called when it changes from empty, or when `wants_input` changes, from within such a call.
  virtual std::string& output() = 0;
  // This many bytes of the output that the owner took are not sent yet. Calls receivers.
  virtual void OnUnsent(size_t bytes, base::Instant now) = 0;
  // False while the receivers have not consumed enough: the owner does not read meanwhile.
  virtual bool wants_input() const = 0;
  // Whether the owner must close its direction of the connection once the output is sent, because a
  // tunnel has ended.
  virtual bool output_ended() const = 0;
  virtual void SetWaker(std::function<void()> wake) = 0;
};

}  // namespace headgate::http
