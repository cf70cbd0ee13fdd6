// A session whose batches are counted and timed.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "headgate/base/clock.h"
#include "headgate/net/session.h"
#include "headgate/observe/metrics.h"

namespace headgate::app {

// The metrics and labels that a batch is counted under.
struct Meter {
  observe::Metrics& metrics;
  observe::Metrics::Front front;
  uint32_t worker;
  const base::Clock& clock;
  // Requests that this loop's sessions of the front have answered so far.
  std::function<uint64_t()> answered;
};

class MeteredSession final : public net::Session {
 public:
  // `meter` must outlive the session.
  MeteredSession(std::unique_ptr<net::Session> session, const Meter& meter)
      : session_(std::move(session)), meter_(meter) {}

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override {
    const base::BootTime began = meter_.clock.BootNow();
    const uint64_t before = meter_.answered();
    const Progress progress = session_->OnBytes(input, output, now);
    const uint64_t requests = meter_.answered() - before;
    if (requests > 0) OnAnswers(requests, began);
    waits_since_ = progress.waiting ? std::optional(waits_since_.value_or(began)) : std::nullopt;
    if (progress.protocol_error) meter_.metrics.OnProtocolError(meter_.worker, meter_.front);
    return progress;
  }
  void SetWaker(std::function<void()> wake) override { session_->SetWaker(std::move(wake)); }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override {
    session_->OnGivenUp(why, output, now);
  }
  size_t BufferedBytes() const override { return session_->BufferedBytes(); }
  void OnDrain() override { session_->OnDrain(); }

 private:
  void OnAnswers(uint64_t requests, base::BootTime began) {
    const base::BootTime ended = meter_.clock.BootNow();
    meter_.metrics.OnBatch(meter_.worker, meter_.front, requests, ended - began);
    if (waits_since_) meter_.metrics.OnWait(meter_.worker, meter_.front, ended - *waits_since_);
    waits_since_.reset();
  }

  const std::unique_ptr<net::Session> session_;
  const Meter& meter_;
  std::optional<base::BootTime> waits_since_;  // when the bytes came that wait for an answer
};

}  // namespace headgate::app
