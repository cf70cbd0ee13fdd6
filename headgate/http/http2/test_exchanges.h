// An application and a receiver of responses that record what they get, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/exchange.h"

namespace headgate::http::http2 {

inline constexpr base::Instant kNow = base::Instant::FromNanos(1'000'000'000'000);

// The record of a request, which outlives its receiver.
struct TestRequest {
  RequestHead head;
  ServerExchange* exchange = nullptr;  // null once the receiver is gone
  std::string body;
  size_t unconsumed = 0;
  Fields trailers;
  bool ended = false;
  bool aborted = false;
  bool malformed = false;  // as the exchange states it in OnAbort
  int writable = 0;
  size_t held = 0;  // as HeldBytes states it
};

class TestApplication final : public Application {
 public:
  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& /*peer*/,
                                             ServerExchange& exchange, base::Instant now) override {
    EXPECT_GE(now, kNow);
    requests.push_back(std::make_unique<TestRequest>());
    TestRequest& request = *requests.back();
    request.head = std::move(head);
    request.exchange = &exchange;
    if (on_request) on_request(request);
    return std::make_unique<Receiver>(*this, request);
  }

  TestRequest& last() { return *requests.back(); }
  size_t open() const {
    size_t count = 0;
    for (const auto& request : requests) count += size_t{request->exchange != nullptr};
    return count;
  }

  std::vector<std::unique_ptr<TestRequest>> requests;
  bool consumes = true;  // data at once
  std::function<void(TestRequest&)> on_request;
  std::function<void(TestRequest&)> on_data;
  std::function<void(TestRequest&)> on_end;
  std::function<void(TestRequest&)> on_writable;

 private:
  class Receiver final : public RequestReceiver {
   public:
    Receiver(TestApplication& application, TestRequest& request)
        : application_(application), request_(request) {}
    ~Receiver() override {
      // The exchange is valid until now.
      EXPECT_LE(request_.exchange->unsent_bytes(), size_t{1} << 30);
      request_.exchange = nullptr;
    }
    void OnData(std::string_view bytes, base::Instant /*now*/) override {
      EXPECT_FALSE(bytes.empty());
      EXPECT_FALSE(request_.ended || request_.aborted);
      request_.body += bytes;
      request_.unconsumed += bytes.size();
      EXPECT_LE(request_.unconsumed, kWindowBytes);
      if (application_.consumes) request_.exchange->Consumed(std::exchange(request_.unconsumed, 0));
      if (application_.on_data) application_.on_data(request_);
    }
    void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
      EXPECT_FALSE(request_.ended || request_.aborted);
      request_.ended = true;
      request_.trailers = trailers;
      if (application_.on_end) application_.on_end(request_);
    }
    void OnAbort(base::Instant /*now*/) override {
      EXPECT_FALSE(request_.aborted);
      request_.aborted = true;
      request_.malformed = request_.exchange->request_is_malformed();
    }
    void OnWritable(base::Instant /*now*/) override {
      EXPECT_LT(request_.exchange->unsent_bytes(), kWindowBytes);
      ++request_.writable;
      if (application_.on_writable) application_.on_writable(request_);
    }
    size_t HeldBytes() const override { return request_.held; }

   private:
    TestApplication& application_;
    TestRequest& request_;
  };
};

class TestResponse final : public ResponseReceiver {
 public:
  void OnInformational(const ResponseHead& informational, base::Instant /*now*/) override {
    EXPECT_FALSE(head || ended || failure);
    informationals.push_back(informational);
  }
  void OnHead(ResponseHead final_head, base::Instant /*now*/) override {
    EXPECT_FALSE(head || ended || failure);
    head = std::move(final_head);
  }
  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    EXPECT_TRUE(head && !ended && !failure);
    EXPECT_FALSE(bytes.empty());
    body += bytes;
    unconsumed += bytes.size();
    EXPECT_LE(unconsumed, kWindowBytes);
    if (consumes) exchange->Consumed(std::exchange(unconsumed, 0));
  }
  void OnEnd(const Fields& end_trailers, base::Instant /*now*/) override {
    EXPECT_TRUE(head && !ended && !failure);
    ended = true;
    trailers = end_trailers;
    if (on_end) on_end();
  }
  void OnFailed(Failure why, std::string_view what, base::Instant /*now*/) override {
    EXPECT_FALSE(failure);
    failure = why;
    detail = what;
  }
  void OnWritable(base::Instant /*now*/) override {
    ++writable;
    if (on_writable) on_writable();
  }

  ClientExchange* exchange = nullptr;
  bool consumes = true;  // data at once
  std::vector<ResponseHead> informationals;
  std::optional<ResponseHead> head;
  std::string body;
  size_t unconsumed = 0;
  Fields trailers;
  bool ended = false;
  std::optional<Failure> failure;
  std::string detail;
  int writable = 0;
  std::function<void()> on_end;
  std::function<void()> on_writable;
};

// "200 4", "200 sized 5", "200 unsized", "101 tunnel".
inline std::string Summary(const ResponseHead& head) {
  std::string text = std::to_string(head.status);
  if (head.body.kind == BodyLength::Kind::kSized)
    text += " sized " + std::to_string(head.body.bytes);
  if (head.body.kind == BodyLength::Kind::kUnsized) text += " unsized";
  if (head.body.kind == BodyLength::Kind::kTunnel) text += " tunnel";
  for (const auto [name, value] : head.fields)
    text += " " + std::string(name) + "=" + std::string(value);
  return text;
}

}  // namespace headgate::http::http2
