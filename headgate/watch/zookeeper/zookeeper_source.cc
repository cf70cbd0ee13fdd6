// Follows two directories of an ensemble, rules/ and config/. Each has a Directory, which says what
// must be read, and a DeletionGuard, which decides what a deletion means. Events (watches, answers,
// comparisons) change the directories; Publish reports both together, when everything has been read
// at least once. Invariant: a document that was published is only replaced by a newer one, never
// lost because of a failed read. One file because both directories share sessions, timers and one
// publication.
#include "headgate/watch/zookeeper/zookeeper_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "headgate/client/zookeeper/node_name.h"
#include "headgate/files/files.h"
#include "headgate/watch/zookeeper/document_version.h"
#include "headgate/watch/zookeeper/document_writer.h"
#include "headgate/watch/zookeeper/saved_copy.h"

namespace headgate::watch::zookeeper {
namespace {

using client::zookeeper::Below;
using client::zookeeper::Children;
using client::zookeeper::ClientOptions;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;
using client::zookeeper::WatchEvent;

// Changes that come together are published together.
constexpr base::Duration kPublishDelay = std::chrono::milliseconds(10);
// After a read that failed although there is a connection.
constexpr base::Duration kReadAgainAfter = std::chrono::seconds(1);
// A change of an access list fires no watch.
constexpr base::Duration kForbiddenAgainAfter = std::chrono::seconds(10);
// A server that lags behind catches up within this many rounds; a restored ensemble does not.
constexpr uint32_t kStaleRoundsMax = 10;
// The time that instances take to make their nodes again after their sessions have expired.
constexpr base::Duration kSettleMore = std::chrono::seconds(2);
// Each session asks its server for something this often. A silence longer than kQuietMax counts as
// age.
constexpr base::Duration kKnockPause = std::chrono::seconds(1);
constexpr base::Duration kQuietMax = std::chrono::seconds(2);
// If there are no documents by then, it says what it waits for.
constexpr base::Duration kSilentMax = std::chrono::seconds(3);

ClientOptions OptionsOf(const SourceOptions& options) {
  return {.servers = options.place.servers,
          .session_timeout = options.session_timeout,
          .digest = options.place.digest};
}

bool IsIn(std::string_view directory, std::string_view path) {
  return path.starts_with(directory) && path.size() > directory.size() + 1 &&
         path[directory.size()] == '/' &&
         path.find('/', directory.size() + 1) == std::string_view::npos;
}

// The key whose limit a node below config/ holds.
std::string KeyOf(std::string_view node) {
  return client::zookeeper::TextOfNodeName(node).value_or(std::string(node));
}

}  // namespace

ZooKeeperSource::ZooKeeperSource(SourceOptions options, net::EventLoop& loop)
    : options_(std::move(options)),
      loop_(loop),
      rules_{.path = Below(options_.place.path, "rules")},
      config_{.path = Below(options_.place.path, "config")},
      client_(OptionsOf(options_), loop,
              {.on_connected = [this](bool new_session) { OnConnected(new_session); },
               .on_disconnected =
                   [this] {
                     connected_ = false;
                     OnDisconnected(client_.heard_at(), "the connection is lost");
                   },
               .on_watch = [this](const WatchEvent& event) { OnWatch(event); },
               .on_trouble =
                   [this](const absl::Status& why) {
                     trouble_ = std::string(why.message());
                     PublishSoon();
                   }}),
      reader_(client_, OptionsOf(options_), options_.watched_bytes_max, loop,
              {.on_node =
                   [this](const std::string& path, absl::StatusOr<Node> node) {
                     if (Documents* const documents = DirectoryOf(path))
                       OnNode(*documents, path.substr(documents->path.size() + 1), std::move(node));
                   },
               .on_watch = [this](const WatchEvent& event) { OnWatch(event); },
               .on_doubt =
                   [this](const std::string& path) {
                     OnWatch({.kind = WatchEvent::Kind::kDataChanged, .path = path});
                   },
               .on_lost =
                   [this](base::BootTime heard_at) {
                     OnDisconnected(heard_at, "the connection of a further session is lost");
                   },
               .on_back = [this] { AfterAnswer(rules_); }}),
      journal_(client_, Below(options_.place.path, "audit")),
      publish_timer_(loop, [this] { Publish(); }),
      again_timer_(loop, [this] { ReadAgain(); }),
      forbidden_timer_(loop, [this] { ReadForbidden(); }),
      knock_timer_(loop, [this] { Knock(); }),
      comparison_(loop, options_.compare_pause, ComparisonCallbacks()) {
  // Until everything has been read for the first time, changes may have been missed.
  away_since_ns_.store(loop.Now().ns, std::memory_order_relaxed);
  info_ = options_.info;
  if (!options_.instance.empty()) presence_.emplace(client_, loop, PresenceOptionsOf());
  LoadCopy();
  Knock();
}

client::zookeeper::PresenceOptions ZooKeeperSource::PresenceOptionsOf() {
  return {.directory = Below(options_.place.path, "instances"),
          .name = options_.instance,
          .data = client::zookeeper::PresenceData(info_),
          // All instances have a new session by then.
          .settle = options_.session_timeout + kSettleMore,
          .on_error = [this](const std::string& error) { instances_error_ = error; }};
}

void ZooKeeperSource::Subscribe(OnDocuments on_documents) {
  on_documents_ = std::move(on_documents);
  // The documents of the copy are used until newer ones are read.
  const bool has_copy = !rules_.guard.documents().empty() || !config_.guard.documents().empty();
  if (has_copy) TellOf(News::Kind::kCopyUsed, {}, options_.copy);
  publish_due_ = true;
  publish_timer_.SetAfter(has_copy ? base::Duration(0) : kSilentMax);
}

void ZooKeeperSource::Refresh() {
  refreshed_ = true;
  if (connected_) ReadAll();
  PublishSoon();
}

void ZooKeeperSource::CatchUp(std::function<void()> done) {
  if (!connected_) return done();
  // The watches of all changes before it fire before its answer.
  client_.Sync(options_.place.path, [this, done = std::move(done)](const absl::Status&) mutable {
    catching_up_.push_back(std::move(done));
    EndCatchUp();
  });
}

bool ZooKeeperSource::ReadsAreUnderWay() const {
  const auto reads = [](const Documents& documents) {
    return !documents.directory.complete() && !documents.paused && documents.failed.empty();
  };
  // A directory that is paused, or whose reads failed, is read again only after a pause. A caller
  // of CatchUp does not wait for that.
  return connected_ && (reads(rules_) || reads(config_) || rules_.guard.suspects_any() ||
                        config_.guard.suspects_any());
}

void ZooKeeperSource::EndCatchUp() {
  if (ReadsAreUnderWay() || (connected_ && publish_due_)) return;
  for (const std::function<void()>& done : std::exchange(catching_up_, {})) done();
}

void ZooKeeperSource::TellOf(News::Kind kind, std::string reason, std::string copy) {
  if (on_news_)
    on_news_({.kind = kind,
              .source = NameOf(options_.place),
              .reason = std::move(reason),
              .copy = std::move(copy)});
}

void ZooKeeperSource::LoadCopy() {
  if (options_.copy.empty()) return;
  const auto text = files::ReadRegularFile(options_.copy, kCopyBytesMax);
  if (!text.ok()) return;
  auto copy = CopyFromText(*text, NameOf(options_.place));
  if (!copy.ok()) {
    trouble_ = fmt::format("{}: {}", options_.copy, std::string(copy.status().message()));
    return;
  }
  saved_ = *text;
  const auto remember = [](SavedDirectory& saved, Documents& documents) {
    documents.directory.Remember(saved.nodes, saved.list_zxid, saved.created_zxid);
    documents.guard.Remember(std::move(saved.nodes), std::move(saved.kept), saved.created_zxid);
  };
  remember(copy->rules, rules_);
  remember(copy->config, config_);
}

void ZooKeeperSource::SaveCopy() {
  if (options_.copy.empty()) return;
  const auto saved = [](const Documents& documents) {
    SavedDirectory directory{.nodes = documents.guard.documents(),
                             .kept = documents.guard.kept(),
                             .list_zxid = documents.directory.list_zxid(),
                             .created_zxid = documents.guard.created_zxid()};
    std::erase_if(directory.nodes,
                  [&](const auto& node) { return directory.kept.contains(node.first); });
    return directory;
  };
  std::string text =
      CopyAsText({.rules = saved(rules_), .config = saved(config_)}, NameOf(options_.place));
  // The disk is written only if the documents differ from the last copy.
  if (text == saved_) return;
  const absl::Status written = files::ReplaceFile(
      options_.copy, [&](const std::function<void(std::string_view)>& write) { write(text); });
  const std::string error(written.message());
  if (written.ok()) {
    saved_ = std::move(text);
  } else {
    failures_.fetch_add(1, std::memory_order_relaxed);
  }
  // Once for each reason, not for each change of a document.
  if (std::exchange(copy_error_, error) == error) return;
  TellOf(written.ok() ? News::Kind::kCopyWritten : News::Kind::kCopyNotWritten, error,
         options_.copy);
}

ZooKeeperSource::Documents* ZooKeeperSource::DirectoryOf(std::string_view path) {
  for (Documents* const documents : {&rules_, &config_})
    if (path == documents->path || IsIn(documents->path, path)) return documents;
  return nullptr;
}

void ZooKeeperSource::OnConnected(bool new_session) {
  connected_ = true;
  trouble_.clear();
  ReadAll();
  if (presence_) presence_->OnConnected(new_session);
}

void ZooKeeperSource::ReadAll() {
  for (Documents* const documents : {&rules_, &config_}) {
    documents->may_make = true;
    documents->after_gap = true;
    documents->directory.OnConnected();
    ReadWanted(*documents);
  }
}

void ZooKeeperSource::OnDisconnected(base::BootTime heard_at, std::string_view what) {
  trouble_ = what;
  failures_.fetch_add(1, std::memory_order_relaxed);
  // The first loss counts: its time stays until everything has been read again.
  int64_t current = 0;
  const bool was_followed =
      away_since_ns_.compare_exchange_strong(current, heard_at.ns, std::memory_order_relaxed);
  if (!connected_ || was_followed) TellOf(News::Kind::kLost, trouble_);
  EndCatchUp();
}

void ZooKeeperSource::Knock() {
  reader_.Knock(options_.place.path,
                [this] { heard_at_ns_.store(reader_.heard_at().ns, std::memory_order_relaxed); });
  knock_timer_.SetAfter(kKnockPause);
}

Comparison::Callbacks ZooKeeperSource::ComparisonCallbacks() {
  return {.paths =
              [this] {
                std::vector<std::string> paths;
                for (const Documents* const documents : {&rules_, &config_}) {
                  for (const auto& [name, node] : documents->directory.nodes())
                    paths.push_back(Below(documents->path, name));
                  paths.push_back(documents->path);
                }
                return paths;
              },
          .look =
              [this](const std::string& path, std::function<void(const Comparison::Stat&)> done) {
                const bool is_list = path == rules_.path || path == config_.path;
                is_list ? client_.Exists(path, Watch::kNo, std::move(done))
                        : reader_.Look(path, std::move(done));
              },
          .compare = [this](const std::string& path,
                            const Comparison::Stat& stat) { return Compare(path, stat); },
          .on_missed =
              [this](const std::vector<std::string>& missed) {
                const std::string others =
                    missed.size() == 1 ? "" : fmt::format(" and {} others", missed.size() - 1);
                TellOf(News::Kind::kChangesMissed,
                       fmt::format("no watch told of a change of {}{}", missed.front(), others));
              }};
}

bool ZooKeeperSource::Compare(const std::string& path, const Comparison::Stat& stat) {
  if (!stat.ok() && !absl::IsNotFound(stat.status())) return false;
  Documents& documents = *DirectoryOf(path);
  bool missed = false;
  if (path == documents.path) {
    // A list that may not be read cannot be compared; it is read again after a pause.
    if (documents.unreadable.contains("")) return false;
    missed = documents.directory.OnListCompared(stat.ok() ? stat->children_zxid : 0);
  } else {
    const std::string name = path.substr(documents.path.size() + 1);
    if (documents.unreadable.contains(name)) return false;
    missed = documents.directory.OnNodeCompared(name, stat.ok() ? stat->changed_zxid : 0);
  }
  if (missed) missed_.fetch_add(1, std::memory_order_relaxed);
  ReadWanted(documents);
  return missed;
}

void ZooKeeperSource::OnWatch(const WatchEvent& event) {
  if (presence_) presence_->OnWatch(event);
  Documents* const documents = DirectoryOf(event.path);
  if (documents == nullptr) return;
  if (event.path == documents->path) {
    documents->directory.OnListChanged();
  } else {
    documents->directory.OnNodeChanged(event.path.substr(documents->path.size() + 1));
  }
  ReadWanted(*documents);
}

void ZooKeeperSource::ReadWanted(Documents& documents) {
  // Directory hands out each wanted read once, so it is taken only if it can be sent now.
  if (!connected_ || documents.paused) return;
  const Directory::Wanted wanted = documents.directory.TakeWanted();
  reads_.fetch_add(wanted.nodes.size() + (wanted.list ? 1 : 0), std::memory_order_relaxed);
  if (wanted.list) ReadList(documents);
  for (const std::string& name : wanted.nodes) reader_.Read(Below(documents.path, name));
}

void ZooKeeperSource::ReadList(Documents& documents) {
  client_.List(documents.path, Watch::kYes,
               [this, &documents](const absl::StatusOr<Children>& children) {
                 OnList(documents, children);
               });
}

void ZooKeeperSource::OnList(Documents& documents, const absl::StatusOr<Children>& children) {
  if (children.ok()) {
    documents.unreadable.erase("");
    documents.may_make = false;
    documents.directory.OnListed(children->names, children->stat.children_zxid,
                                 children->stat.created_zxid);
  } else if (absl::IsNotFound(children.status())) {
    // The directory is created only in an empty place: if documents were known before, its absence
    // is a deletion, about which the guard decides.
    const bool is_empty = documents.directory.nodes().empty() &&
                          documents.guard.documents().empty() &&
                          !documents.guard.deleted_lately(loop_.Now());
    // Not right after it was deleted: that would disturb an operator who deletes more.
    if (is_empty && std::exchange(documents.may_make, false)) return MakeDirectory(documents);
    documents.directory.OnMissing();
    // Sets a watch for its creation.
    client_.Exists(documents.path, Watch::kYes,
                   [this, &documents](const absl::StatusOr<NodeStat>& stat) {
                     if (!stat.ok()) return;
                     documents.directory.OnListChanged();
                     ReadWanted(documents);
                   });
  } else {
    if (absl::IsPermissionDenied(children.status()))
      documents.unreadable[""] = "cannot be listed: " + std::string(children.status().message());
    documents.failed.insert("");
    ReadAgainSoon();
  }
  AfterAnswer(documents);
}

void ZooKeeperSource::MakeDirectory(Documents& documents) {
  client_.CreateAll(documents.path, [this, &documents](const absl::Status& made) {
    if (made.ok()) {
      documents.directory.OnListChanged();
      return ReadWanted(documents);
    }
    documents.failed.insert("");
    trouble_ = fmt::format("cannot make {}: {}", documents.path, std::string(made.message()));
    ReadAgainSoon();
    PublishSoon();
  });
}

void ZooKeeperSource::OnNode(Documents& documents, const std::string& name,
                             absl::StatusOr<Node> node) {
  Directory& directory = documents.directory;
  documents.unreadable.erase(name);
  if (node.ok()) {
    directory.OnRead(name, {.text = std::move(node->data),
                            .zxid = node->stat.changed_zxid,
                            .version = node->stat.version});
  } else if (absl::IsNotFound(node.status())) {
    reader_.Forget(Below(documents.path, name));
    directory.OnGone(name);
  } else if (absl::IsPermissionDenied(node.status())) {
    documents.unreadable[name] = "cannot be read: " + std::string(node.status().message());
    directory.OnUnreadable(name);
    forbidden_timer_.SetAfter(kForbiddenAgainAfter);
  } else {
    documents.failed.insert(name);
    ReadAgainSoon();
  }
  AfterAnswer(documents);
}

void ZooKeeperSource::AfterAnswer(Documents& documents) {
  // An answer older than the known state comes from a server that lags behind. After a pause
  // everything is asked again; by then the server may have caught up.
  if (documents.directory.stale() && !std::exchange(documents.paused, true)) ReadAgainSoon();
  ReadWanted(documents);
  heard_at_ns_.store(reader_.heard_at().ns, std::memory_order_relaxed);
  const bool complete = rules_.directory.complete() && config_.directory.complete();
  ever_complete_ = ever_complete_ || complete;
  if (complete && connected_ && reader_.connected() &&
      away_since_ns_.exchange(0, std::memory_order_relaxed) != 0)
    TellOf(News::Kind::kFollowed);
  // Before everything was read once, a publication would look as if the other documents were
  // missing. It is made only to report problems.
  if (ever_complete_ || !documents.unreadable.empty() ||
      documents.directory.stale_rounds() >= kStaleRoundsMax)
    PublishSoon();
}

void ZooKeeperSource::ReadAgainSoon() {
  again_timer_.SetAfter(kReadAgainAfter);
  EndCatchUp();
}

void ZooKeeperSource::ReadAgain() {
  for (Documents* const documents : {&rules_, &config_}) {
    if (std::exchange(documents->paused, false)) documents->directory.OnConnected();
    for (const std::string& name : std::exchange(documents->failed, {}))
      name.empty() ? documents->directory.OnListChanged()
                   : documents->directory.OnNodeChanged(name);
    ReadWanted(*documents);
  }
}

void ZooKeeperSource::ReadForbidden() {
  for (Documents* const documents : {&rules_, &config_}) {
    for (const auto& [name, why] : documents->unreadable)
      name.empty() ? documents->directory.OnListChanged() : documents->directory.Want(name);
    ReadWanted(*documents);
  }
}

void ZooKeeperSource::PublishSoon() {
  // The first publication may still wait for documents.
  if (std::exchange(publish_due_, true) && ever_published_) return;
  // The pause is at least as long as the last publication, so that loading rules takes at most half
  // of this thread's time.
  publish_timer_.SetAfter(std::max(kPublishDelay, last_publish_));
}

void ZooKeeperSource::Publish() {
  publish_due_ = false;
  if (!on_documents_) return;
  const base::BootTime begin = loop_.Now();
  rule::DocumentSet set;
  for (Documents* const documents : {&rules_, &config_}) AddDocuments(*documents, set);
  kept_.store(rules_.guard.kept().size() + config_.guard.kept().size(), std::memory_order_relaxed);
  // "No documents" is a problem only at the start. Later it means that all were deleted on purpose;
  // otherwise the guard would have kept them.
  const bool empty = set.documents.empty() && !ever_published_;
  if (empty) {
    const std::string why =
        ever_complete_ ? "holds no rules and no limits yet"
                       : fmt::format("not read yet: {}",
                                     trouble_.empty() ? "there is no connection" : trouble_);
    set.awaited = true;
    set.problems.push_back(rule::WholeFileProblem(
        NameOf(options_.place), why, "a node below config or rules is loaded at once"));
  }
  ever_published_ = ever_published_ || !empty;
  if (std::exchange(refreshed_, false) || set != published_) {
    on_documents_(set);
    published_ = std::move(set);
  }
  // A copy must not contain a deletion that may turn out to be an accident.
  const bool undecided = rules_.guard.suspects_any() || config_.guard.suspects_any();
  if (ever_complete_ && !empty && !undecided) SaveCopy();
  last_publish_ = loop_.Now() - begin;
  EndCatchUp();
}

// Headgate notes each change in the journal before it makes it. So a deletion without a note was
// made by somebody else, perhaps by accident.
void ZooKeeperSource::Judge(Documents& documents) {
  const Directory& directory = documents.directory;
  DeletionGuard& guard = documents.guard;
  const bool complete = directory.complete();
  guard.OnDocuments(directory.nodes(),
                    {.missing = directory.missing(),
                     .created_zxid = directory.created_zxid(),
                     .after_gap = documents.after_gap,
                     .complete = complete},
                    loop_.Now());
  if (complete) documents.after_gap = false;
  if (complete && std::exchange(documents.confirmed, false)) guard.Confirm();
  if (!connected_) return;
  std::vector<ZooKeeperJournal::Deletion> deletions;
  for (const DeletionGuard::Suspect& one : guard.TakeSuspects())
    deletions.push_back({.document = Below(documents.path, one.name), .zxid = one.node.zxid});
  if (deletions.empty()) return;
  journal_.FindNoted(std::move(deletions),
                     [this, &documents](const std::vector<std::string>& noted) {
                       if (!connected_)
                         return documents.guard.OnNotFoundOut();  // it will ask again
                       std::set<std::string, std::less<>> meant;
                       for (const std::string& path : noted)
                         meant.insert(path.substr(documents.path.size() + 1));
                       documents.guard.OnFoundOut(meant, loop_.Now());
                       PublishSoon();
                     });
}

void ZooKeeperSource::AddDocuments(Documents& documents, rule::DocumentSet& set) {
  const Directory& directory = documents.directory;
  Judge(documents);
  for (const auto& [name, node] : documents.guard.documents()) {
    rule::SourceDocument document{.name = Below(documents.path, name),
                                  .text = node.text,
                                  .version = VersionText(node.zxid, node.version)};
    if (&documents == &config_) {
      document.limit_of = KeyOf(name);
      const std::string usual = client::zookeeper::NodeNameOf(*document.limit_of);
      // Two spellings of one key's name would be two rules for one key, so only the usual spelling
      // is used.
      if (usual != name && documents.guard.documents().contains(usual)) {
        set.problems.push_back(rule::WholeFileProblem(
            document.name,
            fmt::format("is a second limit of the key whose limit is in {}, and not used",
                        Below(documents.path, usual)),
            "delete one of them"));
        continue;
      }
    }
    set.documents.push_back(std::move(document));
  }
  for (const auto& [name, why] : documents.unreadable) {
    set.problems.push_back(
        rule::WholeFileProblem(name.empty() ? documents.path : Below(documents.path, name), why,
                               "its access list must allow this user to read it"));
  }
  if (documents.guard.alarmed()) {
    set.problems.push_back(rule::WholeFileProblem(
        documents.path,
        documents.guard.kept().size() == 1
            ? "1 document was deleted and stays in force"
            : fmt::format("{} documents were deleted at once; they stay in force",
                          documents.guard.kept().size()),
        "make them again; if they were meant to go: headgate rules confirm"));
  }
  if (directory.stale_rounds() >= kStaleRoundsMax) {
    set.problems.push_back(rule::WholeFileProblem(
        documents.path, "the ensemble answers with older documents than it had; they are not taken",
        "if it was restored from a backup: headgate rules confirm"));
  }
}

bool ZooKeeperSource::awaits_confirmation() const {
  return std::ranges::any_of(std::array{&rules_, &config_}, [](const Documents* documents) {
    return documents->guard.alarmed() || documents->directory.stale_rounds() >= kStaleRoundsMax;
  });
}

void ZooKeeperSource::Confirm() {
  for (Documents* const documents : {&rules_, &config_}) {
    documents->guard.Confirm();
    // The operator confirms that the ensemble was restored: its older documents are accepted once
    // all of them have been read.
    if (documents->directory.stale_rounds() > 0) {
      documents->directory.Forget();
      documents->confirmed = true;
    }
    documents->paused = false;
    documents->may_make = true;
    documents->directory.OnListChanged();
    ReadWanted(*documents);
  }
  PublishSoon();
}

std::optional<rule::SourceDocument> ZooKeeperSource::Place(std::string_view name) const {
  rule::SourceDocument document{.name = std::string(name), .text = {}, .version = {}};
  if (!client::zookeeper::IsNodePath(document.name)) return std::nullopt;
  if (IsIn(rules_.path, name)) return document;
  if (!IsIn(config_.path, name)) return std::nullopt;
  document.limit_of = KeyOf(name.substr(config_.path.size() + 1));
  return document;
}

std::string ZooKeeperSource::NameOfLimit(std::string_view key) const {
  return Below(config_.path, client::zookeeper::NodeNameOf(key));
}

void ZooKeeperSource::Read(std::string_view name, OnDocument done) {
  auto document = Place(name);
  if (!document) return done(absl::NotFoundError(fmt::format("{} is no document", name)));
  client_.Get(
      std::string(name), Watch::kNo,
      [document = *std::move(document), done = std::move(done)](absl::StatusOr<Node> node) mutable {
        if (!node.ok()) return done(node.status());
        document.text = std::move(node->data);
        document.version = VersionText(node->stat.changed_zxid, node->stat.version);
        done(std::move(document));
      });
}

void ZooKeeperSource::Write(const rule::DocumentChange& change, OnWritten done) {
  if (!Place(change.name))
    return done(absl::PermissionDeniedError(
        fmt::format("{} is below neither {} nor {}", change.name, rules_.path, config_.path)));
  WriteDocument(client_, change, std::move(done));
}

void ZooKeeperSource::Show(const rule::RulesInForce& rules) {
  if (!presence_) return;
  info_.rules_generation = rules.generation;
  info_.rules_fingerprint = rules.fingerprint;
  presence_->Describe(client::zookeeper::PresenceData(info_));
}

rule::Source::Figures ZooKeeperSource::figures() const {
  const int64_t away_since = away_since_ns_.load(std::memory_order_relaxed);
  const base::BootTime since{away_since != 0 ? away_since
                                             : heard_at_ns_.load(std::memory_order_relaxed)};
  const base::Duration age = base::SystemClock().BootNow() - since;
  return {.failures = failures_.load(std::memory_order_relaxed),
          .age = away_since == 0 && age < kQuietMax ? base::Duration(0) : age,
          .kept = kept_.load(std::memory_order_relaxed),
          .reads = reads_.load(std::memory_order_relaxed),
          .missed = missed_.load(std::memory_order_relaxed)};
}

}  // namespace headgate::watch::zookeeper
