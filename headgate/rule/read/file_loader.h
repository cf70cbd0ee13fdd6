// Loads rule files one by one into the tree that is being built.
#pragma once

#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/problem.h"
#include "headgate/rule/read/fields.h"
#include "headgate/rule/read/load.h"
#include "headgate/rule/rule_path.h"
#include "headgate/rule/rule_tree.h"

namespace headgate::rule::read {

// The most memory for the paths and identities of descriptors. 100,000 descriptors on three levels
// take about 20 MB.
inline constexpr size_t kPathBytesMax = size_t{512} << 20;

// Shared by all sources of one load.
struct LoadState {
  RuleTreeBuilder builder;
  // The position of each node, "file:line:column", for the hint about a duplicate.
  struct Origin {
    std::string_view file;
    Mark mark;
  };
  absl::flat_hash_map<NodeId, Origin> origins;
  size_t path_bytes = 0;
  uint32_t spare_count = 0;

  // Returns a placeholder node for a node that cannot be made because of a problem, so that
  // everything below it is still checked.
  NodeId SpareDomain();
  NodeId Spare(NodeId parent);
};

// A position in the tree during the walk down.
struct Level {
  NodeId node;
  std::string_view domain;
  std::string path;  // "api_key_gold.path"; empty for the domain
  std::string identity;
  size_t depth;  // entries of a request that reaches this level
};

class FileLoader {
 public:
  // `file` must outlive `state`.
  FileLoader(const RuleFile& file, MergeDomains merge_domains, LoadState& state)
      : file_(file),
        merge_domains_(merge_domains),
        state_(state),
        problems_(file.name),
        warnings_(file.name),
        reader_(problems_, warnings_) {}

  // Appends the problems and warnings that it found.
  void Load(std::vector<Problem>& problems, std::vector<Problem>& warnings);

 private:
  void LoadFile();
  void LoadRoot(const DocumentNode& root);
  void LoadDescriptors(Fields& fields, const Level& level);
  void LoadDescriptor(const DocumentNode& mapping, const Level& level);
  NodeId MakeNode(Fields& fields, std::string_view key, std::string_view value, const Level& level);
  void LoadRule(Fields& fields, const Level& level);
  // For each limit of a rule, whether it has a field about stores.
  using StoreFields = std::vector<bool>;
  // Reads the limits of a rule, or of the roll-out of a rule with these `inherited` fields.
  bool ReadLimits(Fields& fields, const StoreFields& inherited, Rule& rule, StoreFields& own);
  void ReadRollout(Fields& fields, const StoreFields& inherited, Rule& rule);
  uint32_t ReadPercent(Fields& rollout);
  // Reads the words about answers that describe the rule's limits.
  void ReadAnswers(Fields& fields, Rule& rule);
  void ReadMetadata(Fields& fields, Rule& rule);
  bool CheckSize(Fields& fields, Word word, std::string_view text);

  const RuleFile& file_;
  const MergeDomains merge_domains_;
  LoadState& state_;
  ProblemList problems_;
  ProblemList warnings_;
  FieldReader reader_;
};

}  // namespace headgate::rule::read
