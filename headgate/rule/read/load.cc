#include "headgate/rule/read/load.h"

#include "headgate/rule/read/file_loader.h"
#include "headgate/rule/read/key_limit.h"
#include "headgate/rule/read/one_liner.h"

namespace headgate::rule::read {

LoadResult LoadRules(std::span<const RuleFile> files, const LoadOptions& options) {
  LoadResult result;
  LoadState state;
  for (const RuleFile& file : files) {
    if (file.limit_of) {
      AddKeyLimit(file.name, *file.limit_of, file.text, state, result.problems);
      continue;
    }
    FileLoader(file, options.merge_domains, state).Load(result.problems, result.warnings);
  }
  for (const std::string& text : options.one_liners)
    AddOneLiner(text, state, result.problems, result.warnings);
  if (result.problems.empty()) result.rules = std::move(state.builder).Build();
  return result;
}

}  // namespace headgate::rule::read
