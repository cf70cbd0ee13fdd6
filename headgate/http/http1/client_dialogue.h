// A conversation with a ClientSession for tests: the bytes that a server sends, the response that
// the receiver gets, and the output.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/http/http1/client_session.h"

namespace headgate::http::http1 {

// Records a response.
class TestResponse final : public ResponseReceiver {
 public:
  void OnInformational(const ResponseHead& interim, base::Instant /*now*/) override {
    EXPECT_FALSE(head || ended || failure);
    informational.push_back(interim);
  }
  void OnHead(ResponseHead final_head, base::Instant /*now*/) override {
    EXPECT_FALSE(head || ended || failure);
    head = std::move(final_head);
    if (on_head) on_head();
  }
  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    EXPECT_FALSE(bytes.empty());
    EXPECT_TRUE(head && !ended && !failure);
    body += bytes;
    unconsumed += bytes.size();
    if (on_data) on_data(bytes.size());
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
  void OnWritable(base::Instant /*now*/) override { ++writable; }

  // All of it in one line, for tables.
  std::string Summary() const {
    std::string text;
    for (const ResponseHead& interim : informational) text += std::to_string(interim.status) + ' ';
    if (head) text += std::to_string(head->status) + ' ' + body;
    if (head && !trailers.empty()) text += " +" + std::to_string(trailers.size());
    if (ended) text += '.';
    if (failure == Failure::kNotSent) text += " not sent";
    if (failure == Failure::kNoAnswer) text += " no answer";
    if (failure == Failure::kInvalid) text += " invalid";
    if (failure == Failure::kTruncated) text += " truncated";
    return text;
  }

  std::vector<ResponseHead> informational;
  std::optional<ResponseHead> head;
  std::string body;
  Fields trailers;
  size_t unconsumed = 0;
  bool ended = false;
  std::optional<Failure> failure;
  std::string detail;
  int writable = 0;
  std::function<void()> on_head;
  std::function<void(size_t)> on_data;
  std::function<void()> on_end;
};

class ClientDialogue {
 public:
  ClientDialogue() {
    session.SetWaker([this] { ++woken; });
  }

  static RequestHead Get() {
    RequestHead head;
    head.method = "GET";
    head.target = "/x";
    head.authority = "a.example";
    return head;
  }

  // Begins an exchange, whose response is `response`. Returns the output.
  std::string Ask(const RequestHead& head) {
    exchange = &session.Begin(head, response, kThen);
    return Taken();
  }
  std::string AskAndEnd(const RequestHead& head = Get()) {
    std::string output = Ask(head);
    exchange->SendEnd({});
    return output + Taken();
  }
  // The server sends bytes.
  void Say(std::string_view bytes) { session.OnBytes(bytes, kThen); }
  // The server has closed its direction.
  void End() { session.OnInputEnd(kThen); }
  // The owner takes the output, and the server gets it.
  std::string Taken() {
    std::string output;
    output.swap(session.output());
    session.OnUnsent(0, kThen);
    return output;
  }

  static constexpr base::Instant kThen = base::Instant::FromNanos(1'000'000'000);

  TestResponse response;
  ClientSession session;
  ClientExchange* exchange = nullptr;
  int woken = 0;
};

}  // namespace headgate::http::http1
