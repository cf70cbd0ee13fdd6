// Reads the vectors of this folder: the limit of each case, its steps, and the expected decisions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "tests/source_dir.h"

namespace headgate::vectors {

using nlohmann::json;

inline constexpr const char* kFiles[] = {
    "token_bucket",           "leaky_bucket",           "leaky_bucket_queue", "fixed_window",
    "fixed_window_first_hit", "sliding_window_counter", "sliding_window_log", "changes"};
// Has steps that are not requests.
inline constexpr const char* kCharges = "charges";
// Has limits that block keys.
inline constexpr const char* kBlocks = "blocks";

inline json Read(const std::string& file) {
  std::ifstream in(SourceDir() / "tests/vectors" / (file + ".json"));
  return json::parse(in);
}

// The algorithm of the cases of `file`.
inline std::string AlgorithmOf(const json& file, const json& test) {
  return (test.contains("algorithm") ? test : file).at("algorithm").get<std::string>();
}

inline algorithm::LimitSpec SpecOf(const std::string& name, const json& limit) {
  using algorithm::Align;
  algorithm::LimitSpec spec{.algorithm = *algorithm::AlgorithmByName(
                                name == "fixed_window_first_hit" ? "fixed_window" : name),
                            .requests = limit.at("requests").get<uint64_t>(),
                            .period = base::Duration(limit.at("period_ns").get<int64_t>()),
                            .align = limit.contains("align") ? Align::kFirstHit : Align::kEpoch};
  if (limit.contains("burst")) spec.burst = limit.at("burst").get<uint64_t>();
  for (const json& seconds : limit.value("block_s", json::array()))
    spec.block.Add(algorithm::BlockLengths::Seconds(seconds.get<uint32_t>()));
  return spec;
}

// A step that changes the limit.
inline void Apply(const json& change, algorithm::LimitSpec& spec) {
  spec.requests = change.at("requests").get<uint64_t>();
  if (change.contains("burst")) spec.burst = change.at("burst").get<uint64_t>();
}

// By how much the times of a case may be moved: whole periods, so that windows begin and end at the
// same steps, and 4.3 s at least. In Redis, an earlier time that a value remembers would be its
// checksum (headgate/store/redis/value_checksum.h).
inline base::Duration ShiftOf(const algorithm::LimitSpec& spec) {
  if (spec.period == base::Duration(0)) return base::Duration(0);  // of the calendar
  return spec.period * ((int64_t{1} << 32) / spec.period.count() + 1);
}

// The act of a step, unless it changes the limit.
struct Act {
  enum class Kind : uint8_t { kTake, kCharge, kUndo };
  Kind kind = Kind::kTake;
  algorithm::Cost cost = 0;
  base::Instant taken_at{0};  // only of kUndo
};

inline Act ActOf(const json& step) {
  using Kind = Act::Kind;
  if (step.contains("charge"))
    return {.kind = Kind::kCharge, .cost = step["charge"].get<algorithm::Cost>()};
  if (!step.contains("undo")) return {.cost = step.at("cost").get<algorithm::Cost>()};
  return {.kind = Kind::kUndo,
          .cost = step["undo"].get<algorithm::Cost>(),
          .taken_at = base::Instant::FromNanos(step.at("taken_at_ns").get<int64_t>())};
}

// The figures that a step expects.
inline json ExpectedOf(json step) {
  for (const char* given : {"at_ns", "cost", "charge", "undo", "taken_at_ns"}) step.erase(given);
  return step;
}

// The figures of the answer to a step. Only a take is allowed or denied.
inline json ToJson(const Act& act, const algorithm::Decision& decision) {
  json figures{{"limit", decision.limit},
               {"remaining", decision.remaining},
               {"reset_after_ns", decision.reset_after.count()}};
  if (decision.blocked()) figures["blocked_ns"] = decision.blocked_for.count();
  if (act.kind != Act::Kind::kTake) return figures;
  figures["allowed"] = decision.allowed;
  figures["retry_after_ns"] = decision.never_fits() ? -1 : decision.retry_after.count();
  figures["wait_ns"] = decision.wait.count();
  return figures;
}

}  // namespace headgate::vectors
