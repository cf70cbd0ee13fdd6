// linearizability_check: checks a history on standard input. The first line is the number of
// requests that a token bucket holds; each other line is an operation:
//
//   take|peek|refund CALLED RETURNED allowed|denied REMAINING
//   take|peek|refund CALLED                           without an answer
//
// Prints why the history is impossible, and exits with 1. Exits with 2 if it cannot be read.
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/linearizability/history_checker.h"

namespace {

using headgate::linearizability::Operation;

bool Read(const std::string& line, Operation& operation) {
  std::istringstream words(line);
  std::string kind;
  if (!(words >> kind >> operation.called)) return false;
  if (kind == "peek") operation.operation = headgate::store::Operation::kPeek;
  if (kind == "refund") operation.operation = headgate::store::Operation::kRefund;
  std::string verdict;
  if (!(words >> operation.returned)) {
    operation.returned = Operation::kNever;
    return true;
  }
  Operation::Answer answer;
  if (!(words >> verdict >> answer.remaining)) return false;
  answer.allowed = verdict == "allowed";
  operation.answer = answer;
  return true;
}

}  // namespace

int main() {
  std::string line;
  std::vector<Operation> history;
  std::getline(std::cin, line);
  const uint64_t requests = std::strtoull(line.c_str(), nullptr, 10);
  while (std::getline(std::cin, line)) {
    if (!Read(line, history.emplace_back())) {
      std::cerr << "cannot read: " << line << "\n";
      return 2;
    }
  }
  const auto limit = headgate::algorithm::Limit::Make(
      {.requests = requests, .period = std::chrono::hours(10'000)});
  if (!limit.ok()) {
    std::cerr << limit.status().message() << "\n";
    return 2;
  }
  const auto at = headgate::base::Instant::FromNanos(1'790'000'000'000'000'000);
  const std::string wrong = headgate::linearizability::Check(*limit, at, history);
  std::cout << wrong;
  return wrong.empty() ? 0 : 1;
}
