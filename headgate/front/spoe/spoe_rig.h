// A conversation with a SpoeSession, and the frames that HAProxy sends, for tests and fuzzers.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/front/auth/auth_rig.h"
#include "headgate/front/spoe/session.h"

namespace headgate::front::spoe {

// HAProxy's first frame.
inline std::string Hello(std::string_view version = "2.0", uint32_t frame_bytes = 16'380,
                         bool health_check = false) {
  std::string out;
  const size_t begin = wire::BeginSpopFrame(wire::SpopType::kHaproxyHello, 0, 0, out);
  wire::AppendSpopText("supported-versions", out);
  wire::AppendSpopTextValue(version, out);
  wire::AppendSpopText("max-frame-size", out);
  wire::AppendSpopNumberValue(frame_bytes, out);
  wire::AppendSpopText("capabilities", out);
  wire::AppendSpopTextValue("pipelining,async", out);
  if (health_check) {
    wire::AppendSpopText("healthcheck", out);
    out.push_back('\x11');
  }
  wire::EndSpopFrame(begin, out);
  return out;
}

// The message of examples/haproxy.
struct NotifyOf {
  std::string_view source = "203.0.113.1";
  std::string_view method = "GET";
  std::string_view path = "/";
  std::string_view query{};
  std::string_view host = "example.com";
  std::vector<mapping::HeaderField> headers{};

  std::string Frame(uint64_t stream_id) const {
    std::string out;
    const size_t begin = wire::BeginSpopFrame(wire::SpopType::kNotify, stream_id, 1, out);
    wire::AppendSpopText("check", out);
    out.push_back(6);
    wire::AppendSpopText("src", out);
    const base::IpAddress ip = *base::ParseIpAddress(source);
    out.push_back(ip.is_v4() ? 6 : 7);
    const auto append = [&](uint64_t bits, int bytes) {
      for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
        out.push_back(static_cast<char>(bits >> shift));
    };
    if (!ip.is_v4()) append(ip.high, 8);
    append(ip.low, ip.is_v4() ? 4 : 8);
    for (const auto& [name, value] :
         {std::pair<std::string_view, std::string_view>("method", method),
          {"path", path},
          {"query", query},
          {"host", host}}) {
      wire::AppendSpopText(name, out);
      wire::AppendSpopTextValue(value, out);
    }
    std::string block;
    for (const auto& [name, value] : headers) {
      wire::AppendSpopText(name, block);
      wire::AppendSpopText(value, block);
    }
    wire::AppendSpopText("", block);
    wire::AppendSpopText("", block);
    wire::AppendSpopText("headers", out);
    out.push_back(9);
    wire::AppendSpopText(block, out);
    wire::EndSpopFrame(begin, out);
    return out;
  }
};

struct Ack {
  uint64_t stream_id = 0;
  std::map<std::string, std::string> variables;
};

// The ACK frames in `output`.
inline std::vector<Ack> Acks(std::string_view output) {
  std::vector<Ack> acks;
  while (!output.empty()) {
    const size_t length = wire::SpopLength(output);
    const auto frame = wire::ParseSpopFrame(output.substr(wire::kSpopLengthBytes, length));
    HEADGATE_CHECK(frame.has_value());
    output.remove_prefix(wire::kSpopLengthBytes + length);
    if (frame->type != wire::SpopType::kAck) continue;
    Ack ack{.stream_id = frame->stream_id, .variables = {}};
    std::string_view rest = frame->payload;
    while (!rest.empty()) {
      HEADGATE_CHECK(rest.substr(0, 3) == "\x01\x03\x02");
      rest.remove_prefix(3);
      const auto name = wire::TakeSpopText(rest);
      const auto value = wire::TakeSpopValue(rest);
      HEADGATE_CHECK(name && value);
      ack.variables[std::string(*name)] = value->kind == wire::SpopValue::Kind::kText
                                              ? std::string(value->text)
                                              : std::to_string(value->number);
    }
    acks.push_back(std::move(ack));
  }
  return acks;
}

struct SpoeRig : auth::AuthRig {
  using auth::AuthRig::AuthRig;

  // Feeds bytes like the event loop: bytes that were not consumed are passed again.
  std::string Say(std::string_view bytes) {
    rest.append(bytes);
    std::string output;
    do {
      progress = session.OnBytes(rest, output, auth::kRigStart);
      rest.erase(0, progress.consumed);
    } while (progress.more);
    return output;
  }

  answer::LimitAnswer answer{checker, {}};
  gate::Judge judge{checker, answer, options, counters};
  Context context{.judge = judge, .answer = answer, .loop = loop, .counters = counters};
  SpoeSession session{context, peer};
  std::string rest;
  net::Session::Progress progress;
};

}  // namespace headgate::front::spoe
