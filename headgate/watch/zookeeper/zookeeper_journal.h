// Notes about changes as nodes of an ensemble, one for each:
//
//   ROOT/audit/<hash of the document's name, 16 digits>-<id of the note>
//
// So the notes about one document are found by their names. They are ordered by the zxids of their
// creation, because the ids come from the clocks of the instances. The oldest of all are removed
// when there are more than kNotesMax.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/client/zookeeper/client.h"
#include "headgate/rule/journal.h"

namespace headgate::watch::zookeeper {

class ZooKeeperJournal final : public rule::Journal {
 public:
  static constexpr size_t kNotesMax = 1000;

  // `client` must outlive it.
  ZooKeeperJournal(client::zookeeper::Client& client, std::string path);

  // A node has to fit into a request of ZooKeeper, together with its path.
  size_t text_bytes_max() const override { return client::zookeeper::kRequestBytesMax - 4096; }
  void Put(const rule::Note& note, OnNoted done) override;
  void Read(std::string_view document, size_t count, OnNotes done) override;

  // The state of a document that was deleted.
  struct Deletion {
    std::string document;
    int64_t zxid;
  };
  // Called with the documents whose deletion, in this state or a later one, is noted. None if the
  // notes cannot be read.
  using OnFound = std::function<void(const std::vector<std::string>& documents)>;
  void FindNoted(std::vector<Deletion> deletions, OnFound done);

 private:
  struct Reading;
  struct Ordering;
  struct Search;

  std::string NodeOf(const rule::Note& note) const;
  void Create(const rule::Note& note, OnNoted done, bool may_make_directory);
  // Calls `done` with the names of these notes, the newest first.
  void Order(std::vector<std::string> names,
             std::function<void(absl::StatusOr<std::vector<std::string>> names)> done);
  void ReadNext(const std::shared_ptr<Reading>& reading);
  void SearchNext(const std::shared_ptr<Search>& search);
  void RemoveOldest();

  client::zookeeper::Client& client_;
  const std::string path_;
  size_t notes_until_removal_ = 1;
};

}  // namespace headgate::watch::zookeeper
