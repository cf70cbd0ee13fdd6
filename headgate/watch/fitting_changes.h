// Finds which of several changes fit to the documents in force, if not all of them do. Each
// document is valid for itself; a contradiction between two of them does not say which one is
// wrong. The one in force stays, and the change that does not fit is refused.
//
// The changes are tried together, then in halves: each bad one among 1,000 costs some 20 attempts.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "headgate/rule/problem.h"

namespace headgate::watch {

class FittingChanges {
 public:
  // If more attempts would be necessary, the changes that are left are refused.
  static constexpr size_t kAttemptsMax = 64;

  // The problems of the documents in force with these changes (one entry for each change: whether
  // it is made); empty if they fit.
  using Attempt = std::function<std::vector<rule::Problem>(const std::vector<bool>& made)>;

  FittingChanges(size_t count, Attempt attempt) : attempt_(std::move(attempt)), made_(count) {}

  struct Refused {
    size_t change;
    std::vector<rule::Problem>
        problems;  // together with the documents in force; empty if it was not tried
  };
  // Call it once. Afterwards made() fits, unless the documents in force contradict each other.
  std::vector<Refused> Find();
  const std::vector<bool>& made() const { return made_; }

 private:
  // Makes the changes that fit; the others are added to `refused_`.
  void Make(std::span<const size_t> changes);

  const Attempt attempt_;
  std::vector<bool> made_;
  std::vector<Refused> refused_;
  size_t attempts_ = 0;
};

}  // namespace headgate::watch
