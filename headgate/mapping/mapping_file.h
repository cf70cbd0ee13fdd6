// Loads mappings from a YAML file (docs/reference/mappings.md), or returns all its problems.
//
//   trusted_proxies: [127.0.0.1]
//   original_request: x-forwarded
//   mappings:
//   - path: /api/*
//     descriptors:
//     - entries:
//       - {key: api_key, header: X-API-Key}
//       - {key: path, path_prefix: 2}
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/base/status.h"
#include "headgate/mapping/mapping.h"
#include "headgate/rule/problem.h"

namespace headgate::mapping {

struct LoadedMappings {
  std::shared_ptr<const MappingSet> set;  // null if there are problems
  std::vector<rule::Problem> problems;
  // Valid, but perhaps not as intended. There are warnings only if there are no problems.
  std::vector<rule::Problem> warnings{};
  // The files that the mappings name: lists, key sets and secrets. Complete even if there are
  // problems, as far as the names could be read.
  std::vector<std::string> files;
};

// Reads a file that the mappings name, as it is written there.
using ReadText = absl::FunctionRef<absl::StatusOr<std::string>(const std::string& name)>;

// Whose requests are mapped.
enum class Asker : uint8_t {
  kOtherProxy,  // another proxy, which describes its requests as the file says and must be one of
                // trusted_proxies
  // This process is the proxy. Requests are at hand, whatever original_request says, and
  // trusted_proxies, which may be absent, only says whose forwarding headers are believed.
  kOwnProxy,
};

// `name`: of the file, for messages.
LoadedMappings LoadMappings(const std::string& name, std::string_view text, ReadText read,
                            Asker asker = Asker::kOtherProxy);

// The mapping of `--auth-header NAME`: every request of any peer has the descriptor api_key=<value>
// in the domain "default", and a rule is required.
std::shared_ptr<const MappingSet> MappingOfHeader(std::string_view header);

// The mapping of a proxy of this process without a file: every request has the descriptor
// client=<id> in the domain "default", if it has an id. The id is the value of the header, or the
// network of the client's address if `header` is empty.
std::shared_ptr<const MappingSet> MappingOfClient(std::string_view header);

// The networks or values of a list file: one on each line; "#" begins a comment.
struct ListLine {
  size_t number = 0;  // from 1
  std::string_view text{};
};
std::vector<ListLine> ListLines(std::string_view text);

}  // namespace headgate::mapping
