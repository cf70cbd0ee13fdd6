#include "headgate/watch/zookeeper/saved_copy.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "headgate/base/crc32c.h"
#include "headgate/wire/json.h"

namespace headgate::watch::zookeeper {
namespace {

using wire::Json;

constexpr std::string_view kHead = "headgate-rules 1 ";

Json AsJson(const SavedDirectory& directory) {
  Json nodes = Json::Object();
  for (const auto& [name, node] : directory.nodes) {
    nodes.Add(name,
              Json::Object({{"text", node.text}, {"zxid", node.zxid}, {"version", node.version}}));
  }
  Json json;
  json.Add("zxid", directory.list_zxid);
  json.Add("nodes", std::move(nodes));
  return json;
}

// Nothing if a member is absent or of another type.
std::optional<SavedDirectory> FromJson(const Json& json) {
  if (!json["zxid"].is_whole() || !json["nodes"].is_object()) return std::nullopt;
  SavedDirectory directory{.list_zxid = json["zxid"].whole()};
  for (const auto& [name, node] : json["nodes"].members()) {
    if (!node["text"].is_string() || !node["zxid"].is_whole() || !node["version"].is_whole())
      return std::nullopt;
    directory.nodes[name] = {.text = std::string(node["text"].text()),
                             .zxid = node["zxid"].whole(),
                             .version = static_cast<int32_t>(node["version"].whole())};
  }
  return directory;
}

}  // namespace

std::string CopyAsText(const SavedCopy& copy, std::string_view place) {
  Json json;
  json.Add("place", place);
  json.Add("rules", AsJson(copy.rules));
  json.Add("config", AsJson(copy.config));
  // Texts that are not UTF-8 are refused as rules anyway.
  const std::string body = json.Text();
  return fmt::format("{}{:08x}\n{}\n", kHead, base::Crc32c(body), body);
}

absl::StatusOr<SavedCopy> CopyFromText(std::string_view text, std::string_view place) {
  constexpr size_t kBodyAt = kHead.size() + 9;
  if (!text.starts_with(kHead) || text.size() < kBodyAt + 1 || text[kBodyAt - 1] != '\n' ||
      text.back() != '\n')
    return absl::DataLossError("it is not a copy of rules, or a part of one");
  const std::string_view body = text.substr(kBodyAt, text.size() - kBodyAt - 1);
  if (text.substr(kHead.size(), 8) != fmt::format("{:08x}", base::Crc32c(body)))
    return absl::DataLossError("its checksum does not match");
  const Json json = Json::Parse(body).value_or(nullptr);
  auto rules = FromJson(json["rules"]);
  auto config = FromJson(json["config"]);
  if (!json["place"].is_string() || !rules || !config)
    return absl::DataLossError("its JSON is not that of a copy of rules");
  if (json["place"].text() != place)
    return absl::FailedPreconditionError(fmt::format("it is a copy of {}", json["place"].text()));
  return SavedCopy{.rules = *std::move(rules), .config = *std::move(config)};
}

}  // namespace headgate::watch::zookeeper
