// A small protocol for the tests of this folder, whose requests may be answered in any order.
//
// A request is an id, a kind and the payload size, one byte each, followed by the payload. Kind 'n'
// is answered at once; kind 'l' is answered once the test completes its id. An answer is the id,
// the payload size, and the reversed payload.
//
// Two sessions serve the same requests. One answers in order and stops reading while a request
// waits; the other continues reading and answers requests as they complete.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/net/session.h"

namespace headgate::net {

struct Frame {
  static constexpr size_t kHeadBytes = 3;

  uint8_t id = 0;
  char kind = 'n';
  std::string payload{};

  std::string Bytes() const {
    return std::string{static_cast<char>(id), kind, static_cast<char>(payload.size())} + payload;
  }
  std::string Answer() const {
    return std::string{static_cast<char>(id), static_cast<char>(payload.size())} +
           std::string(payload.rbegin(), payload.rend());
  }
  // The first frame of `bytes`, if it is complete.
  static std::optional<Frame> Parse(std::string_view bytes) {
    if (bytes.size() < kHeadBytes) return std::nullopt;
    const auto size = static_cast<uint8_t>(bytes[2]);
    if (bytes.size() < kHeadBytes + size) return std::nullopt;
    return Frame{.id = static_cast<uint8_t>(bytes[0]),
                 .kind = bytes[1],
                 .payload = std::string(bytes.substr(kHeadBytes, size))};
  }
  size_t size_bytes() const { return kHeadBytes + payload.size(); }
};

// By id, in order of arrival.
using FramedAnswers = std::map<uint8_t, std::vector<std::string>>;

// Empty if `bytes` is not a sequence of complete answers.
inline std::optional<FramedAnswers> ParseFramedAnswers(std::string_view bytes) {
  FramedAnswers answers;
  while (!bytes.empty()) {
    if (bytes.size() < 2) return std::nullopt;
    const auto size = static_cast<uint8_t>(bytes[1]);
    if (bytes.size() < 2u + size) return std::nullopt;
    answers[static_cast<uint8_t>(bytes[0])].emplace_back(bytes.substr(2, size));
    bytes.remove_prefix(2u + size);
  }
  return answers;
}

// The completed requests, numbered in the order of their bytes.
class Completions {
 public:
  bool Has(uint64_t request) const { return done_.contains(request); }
  void Complete(uint64_t request) {
    done_.insert(request);
    if (wake) wake();
  }
  std::function<void()> wake;

 private:
  std::set<uint64_t> done_;
};

class OrderedFramedSession final : public Session {
 public:
  explicit OrderedFramedSession(Completions& completions) : completions_(completions) {}

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override {
    std::string_view rest(input.data(), input.size());
    Progress progress;
    bool waits = false;
    while (const std::optional<Frame> frame = Frame::Parse(rest)) {
      waits = frame->kind == 'l' && !completions_.Has(next_);
      if (waits) break;
      ++next_;
      ++progress.answered;
      output += frame->Answer();
      rest.remove_prefix(frame->size_bytes());
    }
    wait_.Report(waits, now, progress);
    progress.consumed = input.size() - rest.size();
    progress.mid_request = !rest.empty();
    return progress;
  }
  void SetWaker(std::function<void()> wake) override { completions_.wake = std::move(wake); }

 private:
  Completions& completions_;
  OrderedWait wait_;
  uint64_t next_ = 0;
};

class IndependentFramedSession final : public Session {
 public:
  // The session stops reading when this many requests wait.
  static constexpr size_t kWaitingMax = 8;

  explicit IndependentFramedSession(Completions& completions) : completions_(completions) {}

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override {
    Progress progress;
    const auto answer = [&](const Frame& frame) {
      ++progress.answered;
      output += frame.Answer();
    };
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      if (!completions_.Has(waiting.number)) return false;
      progress.answered_since =
          std::min(progress.answered_since.value_or(waiting.since), waiting.since);
      answer(waiting.frame);
      return true;
    });
    std::string_view rest(input.data(), input.size());
    while (waiting_.size() < kWaitingMax) {
      std::optional<Frame> frame = Frame::Parse(rest);
      if (!frame) break;
      rest.remove_prefix(frame->size_bytes());
      const uint64_t number = next_++;
      if (frame->kind == 'l' && !completions_.Has(number)) {
        waiting_.push_back({.number = number, .frame = *std::move(frame), .since = now});
      } else {
        answer(*frame);
      }
    }
    progress.stop_reading = waiting_.size() == kWaitingMax;
    if (!waiting_.empty()) progress.waiting_since = waiting_.front().since;
    progress.consumed = input.size() - rest.size();
    progress.mid_request = !rest.empty();
    return progress;
  }
  void SetWaker(std::function<void()> wake) override { completions_.wake = std::move(wake); }

 private:
  struct Waiting {
    uint64_t number;
    Frame frame;
    base::Instant since;
  };
  Completions& completions_;
  std::vector<Waiting> waiting_;  // in the order of their bytes
  uint64_t next_ = 0;
};

}  // namespace headgate::net
