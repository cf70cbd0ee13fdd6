// Which requests a limit counts, by the status of their answers.
//
//   count: {status: [401, 403]}
//
// The status is not known when the request is decided. So each request is counted first, and given
// back when its answer has another status (limiter/size_charge.h). Otherwise many requests at the
// same time could pass before the first of them is answered.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::rule {

// The status of an answer whose head has come.
struct AnswerStatus {
  int http = 0;
  // The answer is in the form of gRPC, and its status comes at its end.
  bool grpc_follows = false;
  std::optional<uint32_t> grpc{};
};

class StatusCount {
 public:
  static constexpr int kHttpMin = 100;
  static constexpr int kHttpMax = 599;
  static constexpr uint32_t kGrpcMax = 16;

  // Adds a status ("401"), a class ("4xx") or a range ("500-503").
  absl::Status AddHttp(std::string_view text);
  // Adds a status of gRPC by its name or number: "UNAUTHENTICATED", "16".
  absl::Status AddGrpc(std::string_view text);

  bool empty() const { return http_.none() && grpc_.none(); }
  // Whether the answer is counted; absent if that is known only at its end.
  std::optional<bool> Counts(const AnswerStatus& status) const;

  // As in a file: "401", "500-503"; "PERMISSION_DENIED", "UNAUTHENTICATED".
  std::vector<std::string> HttpItems() const;
  std::vector<std::string> GrpcItems() const;

  bool operator==(const StatusCount&) const = default;

 private:
  std::bitset<kHttpMax - kHttpMin + 1> http_;
  std::bitset<kGrpcMax + 1> grpc_;
};

// Describes a count for people: "answers with status 401, 403 or grpc_status UNAUTHENTICATED".
std::string Describe(const StatusCount& count);

}  // namespace headgate::rule
