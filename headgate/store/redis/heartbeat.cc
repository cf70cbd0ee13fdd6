#include "headgate/store/redis/heartbeat.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headgate::store::redis {
namespace {

// KEYS[1] is the set, ARGV[1] the instance, ARGV[2] the silence in milliseconds after which an
// instance is dropped. An entry further ahead of the clock was written before the clock was set
// back.
constexpr std::string_view kText = R"lua(local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local silence = tonumber(ARGV[2])
local added = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - silence)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + silence, '+inf')
redis.call('PEXPIRE', KEYS[1], silence)
return {redis.call('ZCARD', KEYS[1]), added})lua";

const Script& BeatScript() {
  static const Script script = MakeScript("heartbeat", kText);
  return script;
}

struct Heard {
  uint32_t members = 0;
  bool missing = false;
};

std::optional<Heard> HeardIn(const wire::RespValue& reply) {
  const auto is_integer = [](const wire::RespValue& item) {
    return item.kind == wire::RespValue::Kind::kInteger;
  };
  if (reply.items.size() != 2 || !std::all_of(reply.items.begin(), reply.items.end(), is_integer))
    return std::nullopt;
  return Heard{
      .members = static_cast<uint32_t>(std::clamp<int64_t>(reply.items[0].integer, 1, UINT32_MAX)),
      .missing = reply.items[1].integer != 0};
}

}  // namespace

uint32_t InstanceCount::OnHeard(uint32_t heard, bool missing, base::BootTime now) {
  if (missing && known_ > 0) suspected_until_ = now + silence_max_;
  if (heard >= known_ || !suspected_until_ || now >= *suspected_until_) {
    known_ = heard;
    suspected_until_.reset();
  }
  return known_;
}

Heartbeat::Heartbeat(Client& client, std::string instance, HeartbeatOptions options)
    : client_(client),
      instance_(std::move(instance)),
      options_(std::move(options)),
      state_(std::make_shared<State>(options_)),
      timer_(client.loop(), [this] { Beat(); }) {
  timer_.Set(client_.loop().Now());
}

void Heartbeat::Beat() {
  timer_.Set(client_.loop().Now() + options_.interval);
  const std::string silence_ms =
      std::to_string(std::chrono::ceil<std::chrono::milliseconds>(options_.silence_max).count());
  const std::array<std::string_view, 2> arguments = {instance_, silence_ms};
  client_.Call({.script = &BeatScript(), .key = options_.key, .arguments = arguments}, {},
               [state = state_, &loop = client_.loop()](const PendingCall::Outcome& reply) {
                 state->OnAnswer(reply, loop.Now());
               });
}

void Heartbeat::State::OnAnswer(const PendingCall::Outcome& reply, base::BootTime now) {
  // A key of another type is an error of the script, too, but the client turns it into a status and
  // raises an alarm.
  if (!reply.ok() && reply.status().code() != absl::StatusCode::kInternal) return;
  std::string error;
  if (!reply.ok()) {
    error = std::string(reply.status().message());
  } else if (const auto heard = HeardIn(**reply)) {
    known.store(count.OnHeard(heard->members, heard->missing, now), std::memory_order_relaxed);
  } else {
    error = (*reply)->is_error() ? (*reply)->text : "the answer is not two numbers";
  }
  if (!error.empty()) errors.Add();
  if (error == last_error) return;
  last_error = std::move(error);
  if (on_error) on_error(last_error);
}

void Heartbeat::Leave(std::function<void()> done) {
  timer_.Cancel();
  const std::array<std::string_view, 3> words = {"ZREM", options_.key, instance_};
  client_.CallCommand(options_.key, words, {},
                      [done = std::move(done)](const PendingCall::Outcome&) { done(); });
}

}  // namespace headgate::store::redis
