// The last good documents on disk, for a start while the ensemble is unreachable.
//
// The file is one line, "headgate-rules 1 CRC32C", and JSON. A file that is damaged, or of another
// path in ZooKeeper, counts as absent. The servers of the URL do not matter, because an ensemble
// has several.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/watch/zookeeper/directory.h"

namespace headgate::watch::zookeeper {

struct SavedDirectory {
  NodeTexts nodes{};
  // Documents that were deleted, and are kept because that looked like an accident.
  NodeTexts kept{};
  int64_t list_zxid = 0;
  int64_t created_zxid = 0;  // of the directory; 0: not known
};

struct SavedCopy {
  SavedDirectory rules{};
  SavedDirectory config{};
};

// A larger file is not read.
inline constexpr size_t kCopyBytesMax = size_t{256} << 20;

// `place` is the URL of the documents, without password.
std::string CopyAsText(const SavedCopy& copy, std::string_view place);
// DataLoss: damaged. FailedPrecondition: it belongs to another path; the message names its place.
absl::StatusOr<SavedCopy> CopyFromText(std::string_view text, std::string_view place);

}  // namespace headgate::watch::zookeeper
