// The last good documents on disk, for a start while the ensemble is away.
//
// The file is one line, "headgate-rules 1 CRC32C", and JSON. A file that is damaged, or of another
// place in ZooKeeper, counts as absent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/watch/zookeeper/directory.h"

namespace headgate::watch::zookeeper {

struct SavedDirectory {
  NodeTexts nodes{};
  int64_t list_zxid = 0;
};

struct SavedCopy {
  SavedDirectory rules{};
  SavedDirectory config{};
};

// A larger file is not read.
inline constexpr size_t kCopyBytesMax = size_t{256} << 20;

// `place` is the URL of the documents, without password.
std::string CopyAsText(const SavedCopy& copy, std::string_view place);
// DataLoss: damaged. FailedPrecondition: it belongs to another place, which the message names.
absl::StatusOr<SavedCopy> CopyFromText(std::string_view text, std::string_view place);

}  // namespace headgate::watch::zookeeper
