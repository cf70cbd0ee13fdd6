// Rules in ZooKeeper as a source of rules. Below a root:
//
//   rules/NAME    a rule file
//   audit/        the changes that were made through Headgate (zookeeper_journal.h)
//   config/KEY    the limit of one API key, as JSON (rule/read/key_limit.h); KEY is percent-encoded
//   if
//                 it is not the name of a znode (client/zookeeper/node_name.h)
//   instances/ID  one node for each instance that is alive (client/zookeeper/presence.h)
//
// A document's name is the whole path. A document is refused alone: the others still apply.
// Documents are only ever replaced by newer ones. While the ensemble is unreachable, and after
// deletions that look like an accident (deletion_guard.h), the last documents stay.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/client/zookeeper/client.h"
#include "headgate/client/zookeeper/place.h"
#include "headgate/client/zookeeper/presence.h"
#include "headgate/net/event_loop.h"
#include "headgate/rule/source.h"
#include "headgate/watch/zookeeper/comparison.h"
#include "headgate/watch/zookeeper/deletion_guard.h"
#include "headgate/watch/zookeeper/directory.h"
#include "headgate/watch/zookeeper/node_reader.h"
#include "headgate/watch/zookeeper/zookeeper_journal.h"

namespace headgate::watch::zookeeper {

struct SourceOptions {
  client::zookeeper::Place place;
  base::Duration session_timeout = std::chrono::seconds(10);
  // The file of the last good documents; empty: none.
  std::string copy{};
  // Between two comparisons with the ensemble (comparison.h).
  base::Duration compare_pause = std::chrono::minutes(1);
  // A session watches at most this many bytes of paths.
  size_t watched_bytes_max = NodeReader::kWatchedBytesMax;
  // The name of this instance's node below instances/; empty: it is not shown, and the others are
  // not counted.
  std::string instance{};
  client::zookeeper::PresenceInfo info{};
};

class ZooKeeperSource final : public rule::Source {
 public:
  ZooKeeperSource(SourceOptions options, net::EventLoop& loop);

  void Tell(OnNews on_news) override { on_news_ = std::move(on_news); }
  void Subscribe(OnDocuments on_documents) override;
  void Refresh() override;
  // Asks the ensemble for its present state, and waits for the reads in progress, but not for
  // failed ones.
  void CatchUp(std::function<void()> done) override;
  std::optional<rule::SourceDocument> Place(std::string_view name) const override;
  std::string NameOfLimit(std::string_view key) const override;
  rule::Journal* journal() override { return &journal_; }
  void Read(std::string_view name, OnDocument done) override;
  void Write(const rule::DocumentChange& change, OnWritten done) override;
  bool documents_stand_alone() const override { return true; }
  bool awaits_confirmation() const override;
  void Confirm() override;
  Figures figures() const override;
  void Show(const rule::RulesInForce& rules) override;
  uint32_t instances() const override { return presence_ ? presence_->instances() : 0; }
  std::string instances_error() const override { return instances_error_; }

 private:
  // One of the two directories.
  struct Documents {
    std::string path;
    Directory directory{};
    DeletionGuard guard{};
    // Nodes that cannot be read, and the directory itself (""), with the reasons.
    std::map<std::string, std::string, std::less<>> unreadable{};
    // Nodes, and the list (""), whose read failed. They are read again after a pause.
    std::set<std::string> failed{};
    bool paused = false;    // no reads before the next attempt
    bool may_make = false;  // the directory may be created if it is missing
    bool after_gap = true;  // not everything has been read since the last connection
    bool confirmed =
        false;  // accept the documents of a restored ensemble, once everything has been read
  };

  void TellOf(News::Kind kind, std::string reason = {}, std::string copy = {});
  void LoadCopy();
  void SaveCopy();
  Documents* DirectoryOf(std::string_view path);
  client::zookeeper::PresenceOptions PresenceOptionsOf();
  void OnConnected(bool new_session);
  void ReadAll();
  void OnDisconnected(base::BootTime heard_at, std::string_view what);
  void OnWatch(const client::zookeeper::WatchEvent& event);
  void ReadWanted(Documents& documents);
  void ReadList(Documents& documents);
  void OnList(Documents& documents, const absl::StatusOr<client::zookeeper::Children>& children);
  void OnNode(Documents& documents, const std::string& name,
              absl::StatusOr<client::zookeeper::Node> node);
  void MakeDirectory(Documents& documents);
  void AfterAnswer(Documents& documents);
  void ReadAgainSoon();
  void ReadAgain();
  void ReadForbidden();
  // Asks each session whether its server is there.
  void Knock();
  Comparison::Callbacks ComparisonCallbacks();
  bool Compare(const std::string& path, const Comparison::Stat& stat);
  bool ReadsAreUnderWay() const;
  void EndCatchUp();
  void PublishSoon();
  void Publish();
  void Judge(Documents& documents);
  void AddDocuments(Documents& documents, rule::DocumentSet& set);

  const SourceOptions options_;
  net::EventLoop& loop_;
  OnNews on_news_;
  OnDocuments on_documents_;
  Documents rules_;
  Documents config_;
  client::zookeeper::Client client_;
  NodeReader reader_;
  ZooKeeperJournal journal_;
  std::optional<client::zookeeper::Presence> presence_;
  client::zookeeper::PresenceInfo info_;
  std::string instances_error_;
  bool connected_ = false;
  bool ever_complete_ = false;  // everything has been read once
  bool ever_published_ = false;
  std::string trouble_;  // why there is no connection
  base::Duration last_publish_{0};
  net::Timer publish_timer_;
  net::Timer again_timer_;
  net::Timer forbidden_timer_;
  net::Timer knock_timer_;
  Comparison comparison_;
  bool publish_due_ = false;
  bool refreshed_ = false;
  std::vector<std::function<void()>> catching_up_;  // until the reads in progress are published
  rule::DocumentSet published_;
  std::string saved_;       // the last copy that was written
  std::string copy_error_;  // why the newest copy could not be written
  // On CLOCK_BOOTTIME: since when changes may have been missed (0: none), and when the session with
  // the longest silence last heard from its server.
  std::atomic<int64_t> away_since_ns_{0};
  std::atomic<int64_t> heard_at_ns_{0};
  std::atomic<uint64_t> failures_{0};
  std::atomic<uint64_t> kept_{0};
  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> missed_{0};
};

}  // namespace headgate::watch::zookeeper
