// An application with rules whose requests cost as much as their size, for tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/proxy/rule_rig.h"

namespace headgate::proxy {

inline constexpr uint64_t kKiB = 1024;
inline const http::BodyLength kUnsized{.kind = http::BodyLength::Kind::kUnsized};

inline http::BodyLength Sized(uint64_t bytes) {
  return {.kind = http::BodyLength::Kind::kSized, .bytes = bytes};
}

// One rule for each client, with the words of one limit.
struct SizeRig : RuleRig {
  explicit SizeRig(std::string_view limit, Store kind = Store::kMemory) : RuleRig({}, kind) {
    SetLimit(limit);
  }
  void SetLimit(std::string_view limit) {
    SetRuleFile(
        fmt::format("domain: default\ndescriptors:\n- key: client\n  rate_limit: {{{}}}\n", limit));
  }
  // The same rules, in shadow.
  void SetShadowLimit(std::string_view limit) {
    SetRuleFile(
        fmt::format("domain: default\ndescriptors:\n- key: client\n  shadow_mode: true\n"
                    "  rate_limit: {{{}}}\n",
                    limit));
  }
  // The store answers everything, and the settlements that wait for it continue.
  void Settle() {
    for (int i = 0; shared && i < 10; ++i) {
      shared->AnswerAll();
      Pass(base::Duration(0));
    }
  }
  std::unique_ptr<Exchange> Begin(const http::BodyLength& body, std::string_view method = "POST") {
    http::RequestHead head = HeadOf("/x", {{"x-client-id", "ann"}});
    head.method = method;
    head.body = body;
    auto exchange = Ask(std::move(head));
    Settle();
    return exchange;
  }
  // The upstream that has the only open request answers it.
  void SendHead(const http::BodyLength& body, int status = 200) {
    Answer(upstream).OnHead({.status = status, .body = body}, now);
    Settle();
  }
  void SendBody(uint64_t bytes) { Answer(upstream).OnData(std::string(bytes, 'x'), now); }
  void End() {
    std::exchange(upstream.receiver, nullptr)->OnEnd({}, now);
    free.push_front(&upstream);
    Settle();
  }
  // A whole request whose answer has no length, and this size.
  void Get(uint64_t bytes) {
    const auto exchange = Begin(Sized(0), "GET");
    exchange->receiver->OnEnd({}, now);
    SendHead(kUnsized);
    if (bytes > 0) SendBody(bytes);
    End();
  }
  void Leave(Exchange& exchange) {
    exchange.receiver->OnAbort(now);
    free.push_front(&upstream);
    Settle();
  }
  void Pass(base::Duration d) {
    RuleRig::Pass(d);
    wheel.Advance(now);
  }

  // The bucket of ann, for a request of this cost.
  algorithm::Decision Peek(uint64_t cost = 0) {
    const rule::Entry entry{.key = "client", .value = "ann"};
    const rule::Descriptor descriptor{.entries = {&entry, 1}, .cost = cost};
    const limiter::Request request{.domain = "default",
                                   .descriptors = {&descriptor, 1},
                                   .operation = limiter::Operation::kPeek};
    limiter::Response response;
    limiter::Question question([] {});
    EXPECT_TRUE(checker->Check(request, response, now, &question).ok());
    if (response.waiting) {
      shared->AnswerAll();
      EXPECT_TRUE(checker->Continue(question, response, now).ok());
    }
    return response.descriptors[0].decision;
  }
  // The requests taken from the bucket of ann, at most its limit.
  uint64_t Taken() {
    const algorithm::Decision decision = Peek();
    return decision.limit - decision.remaining;
  }
};

}  // namespace headgate::proxy
