// Notes about changes as nodes of an ensemble, one for each:
//
//   ROOT/audit/<hash of the document's name, 16 digits>-<id of the note>
//
// So the notes about one document are found by their names. The oldest of all are removed when
// there are more than kNotesMax.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/journal.h"
#include "headgate/zookeeper/client.h"

namespace headgate::watch::zookeeper {

class ZooKeeperJournal final : public rule::Journal {
 public:
  static constexpr size_t kNotesMax = 1000;

  // `client` must outlive it.
  ZooKeeperJournal(headgate::zookeeper::Client& client, std::string path);

  // A node has to fit into a request of ZooKeeper, together with its path.
  size_t text_bytes_max() const override { return headgate::zookeeper::kRequestBytesMax - 4096; }
  void Put(const rule::Note& note, OnNoted done) override;
  void Read(std::string_view document, size_t count, OnNotes done) override;

 private:
  struct Reading;

  std::string NodeOf(const rule::Note& note) const;
  void Create(const rule::Note& note, OnNoted done, bool may_make_directory);
  void ReadNext(const std::shared_ptr<Reading>& reading);
  void RemoveOldest();

  headgate::zookeeper::Client& client_;
  const std::string path_;
  size_t notes_until_removal_ = 1;
};

}  // namespace headgate::watch::zookeeper
