#include "headgate/rule/status_count.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
constexpr std::array<std::string_view, StatusCount::kGrpcMax + 1> kGrpcNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// A status with three digits; absent if it is none that the final head of an answer can have.
std::optional<int> ParseStatus(std::string_view text) {
  if (text.size() != 3 || !std::all_of(text.begin(), text.end(), base::IsDigit))
    return std::nullopt;
  const int status = (text[0] - '0') * 100 + (text[1] - '0') * 10 + (text[2] - '0');
  const bool is_final = status == 101 || (status >= 200 && status <= StatusCount::kHttpMax);
  return is_final ? std::optional(status) : std::nullopt;
}

}  // namespace

absl::Status StatusCount::AddHttp(std::string_view text) {
  std::optional<int> first = ParseStatus(text);
  std::optional<int> last = first;
  if (text.size() == 3 && text.substr(1) == "xx" && text[0] >= '2' && text[0] <= '5') {
    first = (text[0] - '0') * 100;
    last = *first + 99;
  } else if (text.size() == 7 && text[3] == '-') {
    first = ParseStatus(text.substr(0, 3));
    last = ParseStatus(text.substr(4));
  }
  if (!first || !last || *first > *last) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not the status of an answer: write one such as 401, a class such as "
                    "4xx, or a range such as 500-503",
                    Quote(text)));
  }
  for (int status = *first; status <= *last; ++status)
    http_.set(static_cast<size_t>(status - kHttpMin));
  return absl::OkStatus();
}

absl::Status StatusCount::AddGrpc(std::string_view text) {
  for (uint32_t code = 0; code <= kGrpcMax; ++code) {
    if (text != kGrpcNames[code] && text != std::to_string(code)) continue;
    grpc_.set(code);
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      fmt::format("{} is not a status of gRPC: write a name such as UNAUTHENTICATED, or a number "
                  "from 0 to {}",
                  Quote(text), kGrpcMax));
}

std::optional<bool> StatusCount::Counts(const AnswerStatus& status) const {
  const bool is_known = status.http >= kHttpMin && status.http <= kHttpMax;
  if (is_known && http_[static_cast<size_t>(status.http - kHttpMin)]) return true;
  if (grpc_.none()) return false;
  if (status.grpc) return *status.grpc <= kGrpcMax && grpc_[*status.grpc];
  return status.grpc_follows ? std::nullopt : std::optional(false);
}

std::vector<std::string> StatusCount::HttpItems() const {
  std::vector<std::string> items;
  for (size_t i = 0; i < http_.size(); ++i) {
    if (!http_[i]) continue;
    const size_t first = i;
    while (i + 1 < http_.size() && http_[i + 1]) ++i;
    items.push_back(std::to_string(first + kHttpMin));
    if (i > first) items.back() += fmt::format("-{}", i + kHttpMin);
  }
  return items;
}

std::vector<std::string> StatusCount::GrpcItems() const {
  std::vector<std::string> items;
  for (size_t code = 0; code < grpc_.size(); ++code) {
    if (grpc_[code]) items.emplace_back(kGrpcNames[code]);
  }
  return items;
}

std::string Describe(const StatusCount& count) {
  const std::vector<std::string> http = count.HttpItems();
  const std::vector<std::string> grpc = count.GrpcItems();
  std::string out = "answers with ";
  if (!http.empty()) out += fmt::format("status {}", fmt::join(http, ", "));
  if (!http.empty() && !grpc.empty()) out += " or ";
  if (!grpc.empty()) out += fmt::format("grpc_status {}", fmt::join(grpc, ", "));
  return out;
}

}  // namespace headgate::rule
