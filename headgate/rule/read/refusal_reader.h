// Reads a custom body for answers that refuse a request (refusal.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/problem.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/refusal.h"

namespace headgate::rule::read {

// Reads the mapping {content_type, body}; content_type is text/plain if it is absent. Null if there
// are problems, which are added to `problems`.
std::shared_ptr<const Refusal> ReadRefusal(const DocumentNode& node, ProblemList& problems);

// Reads a file whose text is that mapping.
struct LoadedRefusal {
  std::shared_ptr<const Refusal> refusal;  // null if there are problems
  std::vector<Problem> problems{};
};
LoadedRefusal LoadRefusal(const std::string& name, std::string_view text);

}  // namespace headgate::rule::read
