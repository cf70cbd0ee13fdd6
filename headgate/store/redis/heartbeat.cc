#include "headgate/store/redis/heartbeat.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headgate::store::redis {
namespace {

// KEYS[1] the set, ARGV[1] the instance, ARGV[2] after how many milliseconds of silence one is dropped. What is ahead
// of the clock by more was written before the clock was set back.
constexpr std::string_view kText = R"lua(local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local silence = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - silence)
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + silence, '+inf')
redis.call('PEXPIRE', KEYS[1], silence)
return redis.call('ZCARD', KEYS[1]))lua";

const Script& BeatScript() {
  static const Script script = MakeScript("heartbeat", kText);
  return script;
}

}  // namespace

Heartbeat::Heartbeat(Client& client, std::string instance, HeartbeatOptions options)
    : client_(client),
      instance_(std::move(instance)),
      options_(std::move(options)),
      timer_(client.loop(), [this] { Beat(); }) {
  timer_.Set(client_.loop().Now());
}

void Heartbeat::Beat() {
  timer_.Set(client_.loop().Now() + options_.interval);
  const std::string silence_ms =
      std::to_string(std::chrono::ceil<std::chrono::milliseconds>(options_.silence_max).count());
  const std::array<std::string_view, 2> arguments = {instance_, silence_ms};
  client_.Call({.script = &BeatScript(), .key = options_.key, .arguments = arguments}, {},
               [heard = heard_](const PendingCall::Outcome& reply) {
                 if (!reply.ok() || (*reply)->kind != wire::RespValue::Kind::kInteger) return;
                 heard->store(static_cast<uint32_t>(std::clamp<int64_t>((*reply)->integer, 1, UINT32_MAX)),
                              std::memory_order_relaxed);
               });
}

void Heartbeat::Leave() {
  timer_.Cancel();
  const std::array<std::string_view, 3> words = {"ZREM", options_.key, instance_};
  client_.CallCommand(options_.key, words, {}, [](const PendingCall::Outcome&) {});
}

}  // namespace headgate::store::redis
