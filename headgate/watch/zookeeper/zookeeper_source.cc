#include "headgate/watch/zookeeper/zookeeper_source.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "headgate/disk/files.h"
#include "headgate/watch/zookeeper/saved_copy.h"
#include "headgate/zookeeper/node_name.h"

namespace headgate::watch::zookeeper {
namespace {

using headgate::zookeeper::Below;
using headgate::zookeeper::Children;
using headgate::zookeeper::ClientOptions;
using headgate::zookeeper::Created;
using headgate::zookeeper::CreateMode;
using headgate::zookeeper::Node;
using headgate::zookeeper::NodeStat;
using headgate::zookeeper::Watch;
using headgate::zookeeper::WatchEvent;

// Changes that come together are published together.
constexpr base::Duration kPublishDelay = std::chrono::milliseconds(10);
// After a read that failed although there is a connection.
constexpr base::Duration kReadAgainAfter = std::chrono::seconds(1);
// A change of an access list fires no watch.
constexpr base::Duration kForbiddenAgainAfter = std::chrono::seconds(10);
// A server that lags behind gives some; an ensemble that was restored gives nothing else.
constexpr uint32_t kStaleAnswersMax = 10;
// The time that instances take to make their nodes again after their sessions have expired.
constexpr base::Duration kSettleMore = std::chrono::seconds(2);
// Says what it waits for if there is nothing by then.
constexpr base::Duration kSilentMax = std::chrono::seconds(3);

ClientOptions OptionsOf(const SourceOptions& options) {
  return {.servers = options.place.servers,
          .session_timeout = options.session_timeout,
          .digest = options.place.digest};
}

// "zxid.version": the zxid alone identifies a state, and the version is what a change expects.
std::string VersionOf(int64_t zxid, int32_t version) { return fmt::format("{}.{}", zxid, version); }

struct Expected {
  int64_t zxid = 0;
  int32_t version = 0;
};

bool IsIn(std::string_view directory, std::string_view path) {
  return path.starts_with(directory) && path.size() > directory.size() + 1 &&
         path[directory.size()] == '/' &&
         path.find('/', directory.size() + 1) == std::string_view::npos;
}

// The key whose limit a node below config/ holds.
std::string KeyOf(std::string_view node) {
  return headgate::zookeeper::TextOfNodeName(node).value_or(std::string(node));
}

std::optional<Expected> ParseVersion(std::string_view text) {
  Expected expected;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, expected.zxid);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [rest, version_error] = std::from_chars(dot + 1, end, expected.version);
  if (version_error != std::errc() || rest != end) return std::nullopt;
  return expected;
}

}  // namespace

ZooKeeperSource::ZooKeeperSource(SourceOptions options, net::EventLoop& loop)
    : options_(std::move(options)),
      loop_(loop),
      rules_{.path = Below(options_.place.path, "rules")},
      config_{.path = Below(options_.place.path, "config")},
      client_(OptionsOf(options_), loop,
              {.on_connected = [this](bool new_session) { OnConnected(new_session); },
               .on_disconnected = [this] { OnDisconnected(); },
               .on_watch = [this](const WatchEvent& event) { OnWatch(event); },
               .on_trouble =
                   [this](const absl::Status& why) {
                     trouble_ = std::string(why.message());
                     PublishSoon();
                   }}),
      reader_(client_, OptionsOf(options_), loop,
              {.on_node =
                   [this](const std::string& path, absl::StatusOr<Node> node) {
                     if (Documents* const documents = DirectoryOf(path))
                       OnNode(*documents, path.substr(documents->path.size() + 1), std::move(node));
                   },
               .on_watch = [this](const WatchEvent& event) { OnWatch(event); },
               .on_doubt =
                   [this](const std::string& path) {
                     OnWatch({.kind = WatchEvent::Kind::kDataChanged, .path = path});
                   }}),
      journal_(client_, Below(options_.place.path, "audit")),
      publish_timer_(loop, [this] { Publish(); }),
      again_timer_(loop, [this] { ReadAgain(); }),
      forbidden_timer_(loop, [this] { ReadForbidden(); }) {
  away_since_ns_.store(loop.Now().ns, std::memory_order_relaxed);
  info_ = options_.info;
  if (!options_.instance.empty()) presence_.emplace(client_, loop, PresenceOptionsOf());
  LoadCopy();
}

headgate::zookeeper::PresenceOptions ZooKeeperSource::PresenceOptionsOf() {
  return {.directory = Below(options_.place.path, "instances"),
          .name = options_.instance,
          .data = headgate::zookeeper::PresenceData(info_),
          // All instances have a new session by then.
          .settle = options_.session_timeout + kSettleMore,
          .on_error = [this](const std::string& error) { instances_error_ = error; }};
}

void ZooKeeperSource::Subscribe(OnDocuments on_documents) {
  on_documents_ = std::move(on_documents);
  // The documents of the copy are in force until there are newer ones.
  const bool has_copy = !rules_.directory.nodes().empty() || !config_.directory.nodes().empty();
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
  return connected_ && (reads(rules_) || reads(config_));
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
  const auto text = disk::ReadRegularFile(options_.copy, kCopyBytesMax);
  if (!text.ok()) return;
  auto copy = CopyFromText(*text, NameOf(options_.place));
  if (!copy.ok()) {
    trouble_ = fmt::format("{}: {}", options_.copy, std::string(copy.status().message()));
    return;
  }
  saved_ = *text;
  rules_.directory.Remember(std::move(copy->rules.nodes), copy->rules.list_zxid);
  config_.directory.Remember(std::move(copy->config.nodes), copy->config.list_zxid);
}

void ZooKeeperSource::SaveCopy() {
  if (options_.copy.empty()) return;
  const auto saved = [](const Documents& documents) {
    return SavedDirectory{.nodes = documents.guard.documents(),
                          .list_zxid = documents.directory.list_zxid()};
  };
  std::string text =
      CopyAsText({.rules = saved(rules_), .config = saved(config_)}, NameOf(options_.place));
  if (text == saved_) return;
  const absl::Status written = disk::ReplaceFile(
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
    documents->directory.OnConnected();
    ReadWanted(*documents);
  }
}

void ZooKeeperSource::OnDisconnected() {
  connected_ = false;
  trouble_ = "the connection is lost";
  TellOf(News::Kind::kLost, trouble_);
  failures_.fetch_add(1, std::memory_order_relaxed);
  int64_t current = 0;
  away_since_ns_.compare_exchange_strong(current, loop_.Now().ns, std::memory_order_relaxed);
  EndCatchUp();
}

void ZooKeeperSource::OnWatch(const WatchEvent& event) {
  if (presence_) presence_->OnWatch(event);
  Documents* const documents = DirectoryOf(event.path);
  if (documents == nullptr) return;
  if (event.path == documents->path || event.kind == WatchEvent::Kind::kDeleted) {
    documents->directory.OnListChanged();
  } else {
    documents->directory.OnNodeChanged(event.path.substr(documents->path.size() + 1));
  }
  ReadWanted(*documents);
}

void ZooKeeperSource::ReadWanted(Documents& documents) {
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
    documents.directory.OnListed(children->names, children->stat.children_zxid);
  } else if (absl::IsNotFound(children.status())) {
    const bool is_empty = documents.directory.nodes().empty() &&
                          documents.guard.documents().empty() &&
                          !documents.guard.deleted_lately(loop_.Now());
    // Not at once after it was deleted: that would be in the way of an operator who deletes more.
    if (is_empty && std::exchange(documents.may_make, false)) return MakeDirectory(documents);
    documents.directory.OnMissing();
    // Tells when it is made again.
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
  if (documents.directory.stale_answers() > 0 && !std::exchange(documents.paused, true)) {
    documents.directory.OnConnected();
    ReadAgainSoon();
  }
  ReadWanted(documents);
  const bool complete = rules_.directory.complete() && config_.directory.complete();
  ever_complete_ = ever_complete_ || complete;
  if (complete && connected_ && away_since_ns_.exchange(0, std::memory_order_relaxed) != 0)
    TellOf(News::Kind::kFollowed);
  if (ever_complete_ || !documents.unreadable.empty()) PublishSoon();
}

void ZooKeeperSource::ReadAgainSoon() {
  again_timer_.SetAfter(kReadAgainAfter);
  EndCatchUp();
}

void ZooKeeperSource::ReadAgain() {
  for (Documents* const documents : {&rules_, &config_}) {
    documents->paused = false;
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
  // The first one may still be waiting for something to say.
  if (std::exchange(publish_due_, true) && ever_published_) return;
  // Loading the rules takes no more than half of this thread's time, whatever is written.
  publish_timer_.SetAfter(std::max(kPublishDelay, last_publish_));
}

void ZooKeeperSource::Publish() {
  publish_due_ = false;
  if (!on_documents_) return;
  const base::BootTime begin = loop_.Now();
  rule::DocumentSet set;
  for (Documents* const documents : {&rules_, &config_}) AddDocuments(*documents, set);
  kept_.store(rules_.guard.kept_count() + config_.guard.kept_count(), std::memory_order_relaxed);
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
  if (ever_complete_ && !empty) SaveCopy();
  last_publish_ = loop_.Now() - begin;
  EndCatchUp();
}

void ZooKeeperSource::AddDocuments(Documents& documents, rule::DocumentSet& set) {
  const Directory& directory = documents.directory;
  documents.guard.OnDocuments(directory.nodes(), directory.missing(), loop_.Now());
  for (const auto& [name, node] : documents.guard.documents()) {
    rule::SourceDocument document{.name = Below(documents.path, name),
                                  .text = node.text,
                                  .version = VersionOf(node.zxid, node.version)};
    if (&documents == &config_) {
      document.limit_of = KeyOf(name);
      const std::string usual = headgate::zookeeper::NodeNameOf(*document.limit_of);
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
        documents.guard.kept_count() == 1
            ? "1 document was deleted and stays in force"
            : fmt::format("{} documents were deleted at once; they stay in force",
                          documents.guard.kept_count()),
        "make them again; if they were meant to go: headgate rules confirm"));
  }
  if (directory.stale_answers() > kStaleAnswersMax) {
    set.problems.push_back(rule::WholeFileProblem(
        documents.path, "the ensemble answers with older documents than it had; they are not taken",
        "if it was restored from a backup: headgate rules confirm"));
  }
}

bool ZooKeeperSource::awaits_confirmation() const {
  const auto awaits = [](const Documents& documents) {
    return documents.guard.alarmed() || documents.directory.stale_answers() > 0;
  };
  return awaits(rules_) || awaits(config_);
}

void ZooKeeperSource::Confirm() {
  for (Documents* const documents : {&rules_, &config_}) {
    documents->guard.Confirm();
    if (documents->directory.stale_answers() > 0) documents->directory.Forget();
    documents->paused = false;
    documents->may_make = true;
    documents->directory.OnListChanged();
    ReadWanted(*documents);
  }
  PublishSoon();
}

std::optional<rule::SourceDocument> ZooKeeperSource::Place(std::string_view name) const {
  rule::SourceDocument document{.name = std::string(name), .text = {}, .version = {}};
  if (!headgate::zookeeper::IsNodePath(document.name)) return std::nullopt;
  if (IsIn(rules_.path, name)) return document;
  if (!IsIn(config_.path, name)) return std::nullopt;
  document.limit_of = KeyOf(name.substr(config_.path.size() + 1));
  return document;
}

std::string ZooKeeperSource::NameOfLimit(std::string_view key) const {
  return Below(config_.path, headgate::zookeeper::NodeNameOf(key));
}

void ZooKeeperSource::Read(std::string_view name, OnDocument done) {
  auto document = Place(name);
  if (!document) return done(absl::NotFoundError(fmt::format("{} is no document", name)));
  client_.Get(
      std::string(name), Watch::kNo,
      [document = *std::move(document), done = std::move(done)](absl::StatusOr<Node> node) mutable {
        if (!node.ok()) return done(node.status());
        document.text = std::move(node->data);
        document.version = VersionOf(node->stat.changed_zxid, node->stat.version);
        done(std::move(document));
      });
}

void ZooKeeperSource::Write(const rule::DocumentChange& change, OnWritten done) {
  if (!Place(change.name))
    return done(absl::PermissionDeniedError(
        fmt::format("{} is below neither {} nor {}", change.name, rules_.path, config_.path)));
  if (change.expected_version.empty()) {
    client_.Create(change.name, change.text.value_or(""), CreateMode::kPersistent,
                   [done = std::move(done)](const absl::StatusOr<Created>& created) {
                     if (absl::IsAlreadyExists(created.status()))
                       return done(absl::AbortedError("it exists already"));
                     if (!created.ok()) return done(created.status());
                     done(VersionOf(created->stat.changed_zxid, created->stat.version));
                   });
    return;
  }
  const auto expected = ParseVersion(change.expected_version);
  if (!expected) return done(absl::AbortedError("it has another version"));
  // A node that was deleted and made again has the same versions, but another zxid.
  client_.Get(
      change.name, Watch::kNo,
      [this, change, expected = *expected, done = std::move(done)](absl::StatusOr<Node> node) {
        if (absl::IsNotFound(node.status())) return done(absl::AbortedError("it is gone"));
        if (!node.ok()) return done(node.status());
        if (node->stat.changed_zxid != expected.zxid)
          return done(absl::AbortedError("it has another version"));
        if (!change.text) {
          return client_.Delete(change.name, expected.version, [done](const absl::Status& status) {
            done(status.ok() ? absl::StatusOr<std::string>("") : status);
          });
        }
        client_.Set(change.name, *change.text, expected.version,
                    [done](const absl::StatusOr<NodeStat>& stat) {
                      if (!stat.ok()) return done(stat.status());
                      done(VersionOf(stat->changed_zxid, stat->version));
                    });
      });
}

void ZooKeeperSource::Show(const rule::RulesInForce& rules) {
  if (!presence_) return;
  info_.rules_generation = rules.generation;
  info_.rules_fingerprint = rules.fingerprint;
  presence_->Describe(headgate::zookeeper::PresenceData(info_));
}

rule::Source::Figures ZooKeeperSource::figures() const {
  const int64_t away_since = away_since_ns_.load(std::memory_order_relaxed);
  return {.failures = failures_.load(std::memory_order_relaxed),
          .age = away_since == 0 ? base::Duration(0)
                                 : base::SystemClock().BootNow() - base::BootTime{away_since},
          .kept = kept_.load(std::memory_order_relaxed),
          .reads = reads_.load(std::memory_order_relaxed)};
}

}  // namespace headgate::watch::zookeeper
