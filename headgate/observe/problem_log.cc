#include "headgate/observe/problem_log.h"

#include <string>

namespace headgate::observe {

void LogProblems(std::string_view event, std::span<const rule::Problem> problems, Log& log) {
  for (const rule::Problem& problem : problems) {
    const std::string reason = PlaceAndMessage(problem);
    problem.hint.empty()
        ? log.Error(event, {{"reason", reason}})
        : log.Error(event, {{"reason", reason}, {"hint", std::string_view(problem.hint)}});
  }
}

}  // namespace headgate::observe
