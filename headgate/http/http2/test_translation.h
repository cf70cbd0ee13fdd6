// Writes a request that came over HTTP/2 as HTTP/1, and reads it as a server of HTTP/1 does, with
// another request behind it. If the reader finds anything but these two, the first one was
// ambiguous.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/http/exchange.h"
#include "headgate/http/http1/client_session.h"
#include "headgate/http/http1/server_session.h"

namespace headgate::http::http2 {

struct TranslatedRequest {
  RequestHead head{};
  std::string body{};
  Fields trailers{};
  bool ended = false;
};

class Translation final : public Application, private ResponseReceiver {
 public:
  // Refused by the reader of HTTP/1: nothing is ambiguous. Otherwise there are two requests.
  bool refused() const { return requests.empty(); }

  void Run(const RequestHead& head, std::string_view body, const Fields& trailers) {
    std::string input = Write(head, body, trailers);
    input += "GET /next HTTP/1.1\r\nHost: next.example\r\n\r\n";
    const http1::ServerOptions options;
    http1::ServerSession server(*this, options, net::Peer{});
    bool woken = false;
    server.SetWaker([&woken] { woken = true; });
    net::Session::Progress progress;
    do {
      woken = false;
      std::string output;
      progress = server.OnBytes(input, output, kThen);
      input.erase(0, progress.consumed);
      server.OnUnsent(0, kThen);
    } while (!progress.close && (progress.more || woken || progress.consumed > 0));
  }

  // The first thing that the reader understood otherwise; empty if it understood `head`.
  std::string_view Difference(const RequestHead& head, std::string_view body,
                              const Fields& trailers) const {
    if (refused()) return "";
    const TranslatedRequest& seen = *requests.front();
    if (seen.head.method != head.method) return "method";
    if (seen.head.target != head.target) return "target";
    if (seen.head.authority != head.authority) return "authority";
    if (seen.head.protocol != head.protocol) return "protocol";
    if (!seen.ended || seen.body != body) return "body";
    if (head.protocol.empty()) {
      if (LengthOf(seen.head) != LengthOf(head)) return "length";
      if (seen.head.expects_continue != head.expects_continue) return "expectation";
      if (seen.head.accepts_trailers != head.accepts_trailers) return "acceptance of trailers";
      if (!AreEqual(seen.head.fields, head.fields)) return "fields";
      if (!AreEqual(seen.trailers, trailers)) return "trailers";
    }
    if (requests.size() != 2 || requests.back()->head.target != "/next" ||
        requests.back()->head.authority != "next.example")
      return "next request";
    return "";
  }

  std::vector<std::unique_ptr<TranslatedRequest>> requests;

 private:
  static constexpr base::Instant kThen = base::Instant::FromNanos(0);

  class Receiver final : public RequestReceiver {
   public:
    Receiver(TranslatedRequest& request, ServerExchange& exchange)
        : request_(request), exchange_(exchange) {
      // A request for a tunnel ends with its answer.
      if (!request.head.protocol.empty()) Answer();
    }
    void OnData(std::string_view bytes, base::Instant /*now*/) override {
      request_.body += bytes;
      exchange_.Consumed(bytes.size());
    }
    void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
      request_.ended = true;
      request_.trailers = trailers;
      if (request_.head.protocol.empty()) Answer();
    }
    void OnAbort(base::Instant /*now*/) override {}
    void OnWritable(base::Instant /*now*/) override {}

   private:
    void Answer() {
      exchange_.SendHead({.status = 204});
      exchange_.SendEnd({});
    }
    TranslatedRequest& request_;
    ServerExchange& exchange_;
  };

  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& /*peer*/,
                                             ServerExchange& exchange,
                                             base::Instant /*now*/) override {
    requests.push_back(std::make_unique<TranslatedRequest>());
    requests.back()->head = std::move(head);
    return std::make_unique<Receiver>(*requests.back(), exchange);
  }

  std::string Write(const RequestHead& head, std::string_view body, const Fields& trailers) {
    http1::ClientSession client;
    ClientExchange& exchange = client.Begin(head, *this, kThen);
    if (!body.empty()) exchange.SendData(body);
    if (head.protocol.empty()) exchange.SendEnd(trailers);
    std::string output = std::exchange(client.output(), {});
    exchange.Cancel();
    return output;
  }

  // A request without a body may say Content-Length: 0.
  static BodyLength LengthOf(const RequestHead& head) {
    const bool none = head.body.kind == BodyLength::Kind::kSized && head.body.bytes == 0;
    return none ? BodyLength{} : head.body;
  }
  static bool AreEqual(const Fields& a, const Fields& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!base::EqualsIgnoreCase(a[i].name, b[i].name) || a[i].value != b[i].value) return false;
    }
    return true;
  }

  void OnInformational(const ResponseHead&, base::Instant) override {}
  void OnHead(ResponseHead, base::Instant) override {}
  void OnData(std::string_view, base::Instant) override {}
  void OnEnd(const Fields&, base::Instant) override {}
  void OnFailed(Failure, std::string_view, base::Instant) override {}
  void OnWritable(base::Instant) override {}
};

}  // namespace headgate::http::http2
