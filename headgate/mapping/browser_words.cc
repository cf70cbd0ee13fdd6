#include "headgate/mapping/browser_words.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/mapping/attribute_fields.h"
#include "headgate/rule/quote.h"
#include "headgate/wire/origin.h"

namespace headgate::mapping {
namespace {

constexpr std::array<std::string_view, 2> kPreflights = {"count", "pass"};

}  // namespace

void ReadBrowserWords(YamlFields& fields, Asker asker, MappingSet& set, rule::ProblemList& problems,
                      rule::ProblemList& warnings) {
  set.passes_preflights = fields.Choice("preflights", kPreflights) == size_t{1};
  for (PlacedText& origin : fields.Texts("cors_origins")) {
    if (auto problem = wire::CheckAllowedOrigin(origin.text)) {
      problems.Add(origin.mark, fmt::format("'{}' {}", rule::Shown(origin.text), problem->message),
                   std::move(problem->hint));
    }
    set.cors_origins.push_back(std::move(origin.text));
  }
  if (asker != Asker::kOwnProxy) {
    if (set.passes_preflights && set.original_request == OriginalRequest::kNone) {
      problems.Add(fields.mark("preflights"), "preflights: pass needs original_request",
                   std::string(kOriginalRequestHint));
    }
    if (set.passes_preflights && set.original_request == OriginalRequest::kLine) {
      warnings.Add(fields.mark("preflights"),
                   "Envoy does not send the fields by which a preflight is told from other "
                   "requests, such as Cookie",
                   "leave preflights out, and put Envoy's filter cors in front of ext_authz: it "
                   "answers preflights itself");
    }
    return;
  }
  set.passes_preflights = false;
  set.cors_origins.clear();
  for (const auto& [word, flag] :
       {std::pair("preflights", "--preflights"), std::pair("cors_origins", "--cors-origin")}) {
    if (!fields.has(word)) continue;
    warnings.Add(fields.mark(word), fmt::format("{} has no effect in the sidecar", word),
                 fmt::format("give the sidecar {}, and remove the word here", flag));
  }
}

}  // namespace headgate::mapping
