#include "headgate/watch/fitting_changes.h"

#include <numeric>
#include <utility>

namespace headgate::watch {

void FittingChanges::Make(std::span<const size_t> changes) {
  if (attempts_ == kAttemptsMax) {
    for (const size_t change : changes) refused_.push_back({.change = change, .problems = {}});
    return;
  }
  ++attempts_;
  for (const size_t change : changes) made_[change] = true;
  std::vector<rule::Problem> problems = attempt_(made_);
  if (problems.empty()) return;
  for (const size_t change : changes) made_[change] = false;
  if (changes.size() == 1) {
    refused_.push_back({.change = changes[0], .problems = std::move(problems)});
    return;
  }
  Make(changes.first(changes.size() / 2));
  Make(changes.subspan(changes.size() / 2));
}

std::vector<FittingChanges::Refused> FittingChanges::Find() {
  std::vector<size_t> all(made_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (!all.empty()) Make(all);
  // A change may fit only after a later one, such as a rule that moves to another document.
  for (size_t before = 0; before != refused_.size() && attempts_ < kAttemptsMax;) {
    before = refused_.size();
    for (const Refused& one : std::exchange(refused_, {})) {
      const size_t change = one.change;
      Make({&change, 1});
    }
  }
  return std::move(refused_);
}

}  // namespace headgate::watch
