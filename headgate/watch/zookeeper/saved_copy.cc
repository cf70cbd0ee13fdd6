#include "headgate/watch/zookeeper/saved_copy.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "headgate/base/crc32c.h"

namespace headgate::watch::zookeeper {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHead = "headgate-rules 1 ";

Json AsJson(const SavedDirectory& directory) {
  Json nodes = Json::object();
  for (const auto& [name, node] : directory.nodes)
    nodes[name] = {{"text", node.text}, {"zxid", node.zxid}, {"version", node.version}};
  return {{"zxid", directory.list_zxid}, {"nodes", std::move(nodes)}};
}

SavedDirectory FromJson(const Json& json) {
  SavedDirectory directory{.list_zxid = json.at("zxid").get<int64_t>()};
  for (const auto& [name, node] : json.at("nodes").items()) {
    directory.nodes[name] = {.text = node.at("text").get<std::string>(),
                             .zxid = node.at("zxid").get<int64_t>(),
                             .version = node.at("version").get<int32_t>()};
  }
  return directory;
}

}  // namespace

std::string CopyAsText(const SavedCopy& copy, std::string_view place) {
  const Json json = {
      {"place", place}, {"rules", AsJson(copy.rules)}, {"config", AsJson(copy.config)}};
  // Texts that are not UTF-8 are refused as rules anyway.
  const std::string body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
  try {
    const Json json = Json::parse(body);
    if (const auto from = json.at("place").get<std::string>(); from != place)
      return absl::FailedPreconditionError(fmt::format("it is a copy of {}", from));
    return SavedCopy{.rules = FromJson(json.at("rules")), .config = FromJson(json.at("config"))};
  } catch (const Json::exception& error) {
    return absl::DataLossError(error.what());
  }
}

}  // namespace headgate::watch::zookeeper
