// The version of a document in ZooKeeper as text: "zxid.version". The zxid alone identifies a state
// of the node, and the version is what a change of the node expects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headgate::watch::zookeeper {

struct DocumentVersion {
  int64_t zxid = 0;
  int32_t version = 0;
};

std::string VersionText(int64_t zxid, int32_t version);
std::optional<DocumentVersion> ParseVersion(std::string_view text);

}  // namespace headgate::watch::zookeeper
