#include "headgate/store/redis/values.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "headgate/store/big_endian.h"
#include "headgate/store/redis/error_text.h"

namespace headgate::store::redis {
namespace {

using base::BootTime;
using base::Duration;
using cas::Version;

constexpr size_t kVersionBytes = 8;
// The longest time until a value that nobody writes is removed.
constexpr Duration kLifeMax = std::chrono::hours(24 * 365);

constexpr std::string_view kGetText = R"lua(local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then return value end
  value = 'foreign'
end
local time = redis.call('TIME')
return {time[1] * 1, time[2] * 1, value})lua";

// ARGV[1] the expected version, ARGV[2] the new version and value, ARGV[3] its life in ms. An empty
// version means that there is no value, an empty value removes it.
constexpr std::string_view kPutText = R"lua(local foreign = '\0\0\0\0\0\0\0\0'
local found = redis.pcall('GETRANGE', KEYS[1], 0, 7)
if type(found) == 'table' then
  if string.sub(found.err, 1, 9) ~= 'WRONGTYPE' then return found end
  found = foreign
elseif #found > 0 and #found < 8 then
  found = foreign
end
if found ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1)lua";

const Script& GetScript() {
  static const Script script = MakeScript("value_get", kGetText);
  return script;
}
const Script& PutScript() {
  static const Script script = MakeScript("value_put", kPutText);
  return script;
}

std::string BytesOf(Version version) {
  std::string bytes;
  Packer(bytes).U64(version.number);
  return bytes;
}

// The status of a script that the server has refused: nothing was written.
absl::Status StatusOf(const wire::RespValue& reply) {
  if (reply.is_error()) return absl::UnavailableError(WithoutArguments(reply.text));
  return absl::InternalError("a script sent an unknown answer: " + reply.ToString());
}

}  // namespace

Duration Values::Left(BootTime deadline) const {
  return std::max(Duration(1), deadline - client_.loop().Now());
}

void Values::Get(std::string_view name, BootTime deadline, GetDone done) {
  const BootTime asked_at = client_.loop().Now();
  client_.Call({.script = &GetScript(), .key = name}, Left(deadline),
               [this, asked_at, done = std::move(done)](const PendingCall::Outcome& reply) {
                 done(Read(reply, asked_at));
               });
}

absl::StatusOr<std::optional<cas::Versioned>> Values::Read(const PendingCall::Outcome& reply,
                                                           BootTime asked_at) {
  using Kind = wire::RespValue::Kind;
  if (!reply.ok()) return reply.status();
  const wire::RespValue& answer = **reply;
  if (answer.kind != Kind::kArray || answer.items.size() != 3) return StatusOf(answer);
  const int64_t seconds = answer.items[0].integer;
  const int64_t micros = answer.items[1].integer;
  if (seconds < 0 || seconds > base::kInstantMax.ns / 1'000'000'000 - 1 || micros < 0 ||
      micros >= 1'000'000)
    return StatusOf(answer);
  measured_ = {.server = base::Instant::FromNanos(seconds * 1'000'000'000 + micros * 1'000),
               .asked_at = asked_at};
  const wire::RespValue& value = answer.items[2];
  if (value.kind != Kind::kBulk || value.text.empty()) return std::nullopt;
  if (value.text.size() < kVersionBytes) return cas::Versioned{};
  const uint64_t version = Unpacker(value.text).U64();
  return cas::Versioned{.bytes = value.text.substr(kVersionBytes), .version = {version}};
}

void Values::Put(const cas::PutRequest& request, PutDone done) {
  const Version next{request.expected ? request.expected->number + 1 : random_.Next() | 1};
  const std::string expected = request.expected ? BytesOf(*request.expected) : "";
  std::string value;
  if (request.bytes) value.append(BytesOf(next)).append(*request.bytes);
  const BootTime now = client_.loop().Now();
  const std::optional<base::Instant> server_now = TimeAt(now);
  // Without the server's time, the expiry cannot be converted to its clock.
  const Duration wanted = server_now ? request.expires_at - *server_now : kLifeMax;
  const auto life = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::clamp<Duration>(wanted, std::chrono::milliseconds(1), kLifeMax));
  const std::string life_ms = std::to_string(life.count());
  const std::array<std::string_view, 3> arguments = {expected, value, life_ms};
  client_.Call({.script = &PutScript(), .key = request.name, .arguments = arguments},
               Left(request.deadline),
               [next, done = std::move(done)](const PendingCall::Outcome& reply) {
                 if (absl::IsAborted(reply.status()))
                   return done(absl::UnknownError(reply.status().message()));
                 if (!reply.ok()) return done(reply.status());
                 if ((*reply)->kind != wire::RespValue::Kind::kInteger)
                   return done(StatusOf(**reply));
                 if ((*reply)->integer == 0) return done(absl::AbortedError("another version"));
                 done(next);
               });
}

// The server read its clock after the question was sent, so this time may be ahead of the server's,
// but by at most the round trip.
std::optional<base::Instant> Values::TimeAt(BootTime now) const {
  if (!measured_) return std::nullopt;
  return measured_->server + (now - measured_->asked_at);
}

}  // namespace headgate::store::redis
