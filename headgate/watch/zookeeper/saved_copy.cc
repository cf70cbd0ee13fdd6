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

void AddNodes(const NodeTexts& texts, bool kept, Json& nodes) {
  for (const auto& [name, node] : texts) {
    Json json = Json::Object({{"text", node.text}, {"zxid", node.zxid}, {"version", node.version}});
    if (kept) json.Add("kept", true);
    nodes.Add(name, std::move(json));
  }
}

Json AsJson(const SavedDirectory& directory) {
  Json nodes = Json::Object();
  AddNodes(directory.nodes, false, nodes);
  AddNodes(directory.kept, true, nodes);
  Json json;
  json.Add("zxid", directory.list_zxid);
  json.Add("created_zxid", directory.created_zxid);
  json.Add("nodes", std::move(nodes));
  return json;
}

// Nothing if a member is absent or of another type. Copies of earlier versions have neither "kept"
// nor "created_zxid".
std::optional<SavedDirectory> FromJson(const Json& json) {
  if (!json["zxid"].is_whole() || !json["nodes"].is_object()) return std::nullopt;
  SavedDirectory directory{.list_zxid = json["zxid"].whole()};
  if (json["created_zxid"].is_whole()) directory.created_zxid = json["created_zxid"].whole();
  for (const auto& [name, node] : json["nodes"].members()) {
    if (!node["text"].is_string() || !node["zxid"].is_whole() || !node["version"].is_whole())
      return std::nullopt;
    const bool kept = node.Find("kept") != nullptr;
    (kept ? directory.kept : directory.nodes)[name] = {
        .text = std::string(node["text"].text()),
        .zxid = node["zxid"].whole(),
        .version = static_cast<int32_t>(node["version"].whole())};
  }
  return directory;
}

// "/rate-limiter" of "zk://HOST:PORT,…/rate-limiter".
std::string_view PathOf(std::string_view place) {
  const size_t servers = place.find("://");
  const size_t path = servers == std::string_view::npos ? servers : place.find('/', servers + 3);
  return path == std::string_view::npos ? std::string_view() : place.substr(path);
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
  if (PathOf(json["place"].text()) != PathOf(place))
    return absl::FailedPreconditionError(fmt::format("it is a copy of {}", json["place"].text()));
  return SavedCopy{.rules = *std::move(rules), .config = *std::move(config)};
}

}  // namespace headgate::watch::zookeeper
