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
  return spec;
}

// A step that changes the limit.
inline void Apply(const json& change, algorithm::LimitSpec& spec) {
  spec.requests = change.at("requests").get<uint64_t>();
  if (change.contains("burst")) spec.burst = change.at("burst").get<uint64_t>();
}

// The decision that a step expects.
inline json ExpectedOf(json step) {
  step.erase("at_ns");
  step.erase("cost");
  return step;
}

inline json ToJson(const algorithm::Decision& decision) {
  return {{"allowed", decision.allowed},
          {"limit", decision.limit},
          {"remaining", decision.remaining},
          {"retry_after_ns", decision.never_fits() ? -1 : decision.retry_after.count()},
          {"reset_after_ns", decision.reset_after.count()},
          {"wait_ns", decision.wait.count()}};
}

}  // namespace headgate::vectors
