#include "tests/scenarios/resp_driver.h"

#include <fmt/format.h>

#include <optional>

#include "headgate/base/check.h"
#include "headgate/testing/scenario_rules.h"

namespace headgate::testing {
namespace {

using wire::RespValue;

// The value of a field, in a RESP3 map or a flat RESP2 array; null if it is missing.
const RespValue* Field(const RespValue& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}

base::Duration Milliseconds(const RespValue* field) {
  return std::chrono::milliseconds(field == nullptr ? -1 : field->integer);
}

}  // namespace

RespDriver::RespDriver(wire::RespVersion version, const MakeSharedStore& make)
    : FrontDriver(make),
      context_({.checker = checker(), .access = access(), .version = "0"}),
      session_(context_, net::Peer{.loopback = true}) {
  if (version == wire::RespVersion::k3) HEADGATE_CHECK(Call({"HELLO", "3"}, base::Instant{0}).ok());
}

absl::StatusOr<RespValue> RespDriver::Call(std::initializer_list<std::string_view> words,
                                           base::Instant now) {
  std::string command;
  wire::RespWriter writer(command, wire::RespVersion::k2);
  writer.Array(words.size());
  for (const std::string_view word : words) writer.Bulk(word);
  const std::string reply = Send(session_, command, now);
  wire::RespReader reader;
  size_t consumed = 0;
  if (reader.Read(reply, consumed) != wire::RespReader::Step::kValue || consumed != reply.size()) {
    return absl::InternalError(fmt::format("expected one RESP value, got \"{}\"", reply));
  }
  if (reader.value().is_error()) return absl::FailedPreconditionError(reader.value().text);
  return std::move(reader.value());
}

absl::StatusOr<algorithm::Decision> RespDriver::Answer(const Ask& ask, base::Instant now) {
  const std::string cost = std::to_string(ask.cost);
  absl::StatusOr<RespValue> reply;
  switch (ask.operation) {
    case Ask::Operation::kRequest:
      reply =
          Call({"HG.CHECK", ask.rule, "COST", cost, "ENTRIES", "1", kScenarioKey, ask.key}, now);
      break;
    case Ask::Operation::kRefund:
      reply =
          Call({"HG.REFUND", ask.rule, "COST", cost, "ENTRIES", "1", kScenarioKey, ask.key}, now);
      break;
    case Ask::Operation::kReset:
      reply = Call({"HG.RESET", ask.rule, "ENTRIES", "1", kScenarioKey, ask.key}, now);
      break;
  }
  if (!reply.ok()) return reply.status();
  const RespValue* allowed = Field(*reply, "allowed");
  const RespValue* decisions = Field(*reply, "decisions");
  const RespValue* first =
      decisions != nullptr && decisions->items.size() == 1 ? &decisions->items[0] : nullptr;
  const RespValue* limit = first != nullptr ? Field(*first, "limit") : nullptr;
  const RespValue* remaining = first != nullptr ? Field(*first, "remaining") : nullptr;
  const RespValue* retry = first != nullptr ? Field(*first, "retry_after_ms") : nullptr;
  if (allowed == nullptr || limit == nullptr || remaining == nullptr || retry == nullptr) {
    return absl::InternalError(
        fmt::format("expected the fields of a decision, got {}", reply->ToString()));
  }
  return algorithm::Decision{
      .allowed = allowed->integer == 1,
      .limit = static_cast<uint64_t>(limit->integer),
      .remaining = static_cast<uint64_t>(remaining->integer),
      .retry_after =
          retry->kind == RespValue::Kind::kNull ? algorithm::kNever : Milliseconds(retry),
      .reset_after = Milliseconds(Field(*first, "reset_after_ms")),
      .wait = Milliseconds(Field(*first, "wait_ms")),
  };
}

}  // namespace headgate::testing
