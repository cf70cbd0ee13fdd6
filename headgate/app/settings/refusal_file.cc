#include "headgate/app/settings/refusal_file.h"

#include <utility>

#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"
#include "headgate/rule/read/refusal_reader.h"

namespace headgate::app {
namespace {

// More than a body may have, because YAML can write a character as an escape.
constexpr size_t kFileBytesMax = 8 * rule::kRefusalBodyBytesMax;

}  // namespace

RefusalFile ReadRefusalFile(const std::string& path) {
  if (path.empty()) return {};
  const auto text = files::ReadRegularFile(path, kFileBytesMax);
  if (!text.ok()) {
    return {.problems = {rule::WholeFileProblem(
                path, std::string(text.status().message()),
                files::HintOnFile(path, "the file holds content_type and body"))}};
  }
  rule::read::LoadedRefusal loaded = rule::read::LoadRefusal(path, *text);
  return {.refusal = std::move(loaded.refusal), .problems = std::move(loaded.problems)};
}

}  // namespace headgate::app
