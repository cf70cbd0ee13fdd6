#include "headgate/watch/zookeeper/zookeeper_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "headgate/base/hash.h"
#include "headgate/client/zookeeper/node_name.h"
#include "headgate/watch/zookeeper/document_version.h"
#include "headgate/wire/json.h"

namespace headgate::watch::zookeeper {
namespace {

using client::zookeeper::Below;
using client::zookeeper::Children;
using client::zookeeper::Created;
using client::zookeeper::CreateMode;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;

constexpr size_t kHashDigits = 16;
// After this many notes of this instance it counts all notes.
constexpr size_t kRemovalEvery = 20;

// The same on every instance. It hides nothing and protects nothing, so it needs no secret.
std::string HashOf(std::string_view document) {
  return fmt::format("{:016x}",
                     base::HashBytes(base::HashSecret{}, base::KeyKind::kRaw, document).high);
}

std::string_view IdOf(std::string_view name) {
  return name.size() > kHashDigits + 1 ? name.substr(kHashDigits + 1) : std::string_view();
}

// Whether the note is about the deletion of its document in a state of at least this zxid. A failed
// change deleted nothing; a change that is noted as begun may have been made.
bool NotesDeletion(std::string_view text, const ZooKeeperJournal::Deletion& deletion) {
  const wire::Json note = wire::Json::Parse(text).value_or(nullptr);
  const std::string_view action = note["action"].text();
  const bool without_text = action == "rollback" && note.Find("new_text") == nullptr &&
                            note.Find("texts_left_out") == nullptr;
  if (note["document"].text() != deletion.document || note["outcome"].text() == "failed" ||
      (action != "delete" && !without_text))
    return false;
  const auto deleted = ParseVersion(note["old_version"].text());
  return deleted && deleted->zxid >= deletion.zxid;
}

}  // namespace

struct ZooKeeperJournal::Reading {
  std::string document;
  std::vector<std::string> names;  // the newest last
  std::vector<rule::Note> notes{};
  OnNotes done;
};

struct ZooKeeperJournal::Ordering {
  std::vector<std::pair<int64_t, std::string>> notes{};  // with the zxids of their creation
  size_t unanswered = 0;
  absl::Status status{};
  std::function<void(absl::StatusOr<std::vector<std::string>> names)> done;
};

struct ZooKeeperJournal::Search {
  struct Note {
    std::string name;
    Deletion deletion;
  };
  std::vector<Note> notes{};  // still to be read
  std::vector<std::string> found{};
  OnFound done;
};

ZooKeeperJournal::ZooKeeperJournal(client::zookeeper::Client& client, std::string path)
    : client_(client), path_(std::move(path)) {}

std::string ZooKeeperJournal::NodeOf(const rule::Note& note) const {
  return Below(path_, fmt::format("{}-{}", HashOf(note.document), note.id));
}

void ZooKeeperJournal::Put(const rule::Note& note, OnNoted done) {
  client_.Set(NodeOf(note), note.text, -1,
              [this, note, done = std::move(done)](const absl::StatusOr<NodeStat>& stat) mutable {
                if (absl::IsNotFound(stat.status())) return Create(note, std::move(done), true);
                done(stat.status());
              });
}

void ZooKeeperJournal::Create(const rule::Note& note, OnNoted done, bool may_make_directory) {
  client_.Create(NodeOf(note), note.text, CreateMode::kPersistent,
                 [this, note, may_make_directory,
                  done = std::move(done)](const absl::StatusOr<Created>& created) mutable {
                   if (absl::IsNotFound(created.status()) && may_make_directory) {
                     return client_.CreateAll(path_, [this, note, done = std::move(done)](
                                                         const absl::Status& made) mutable {
                       if (!made.ok()) return done(made);
                       Create(note, std::move(done), false);
                     });
                   }
                   done(created.status());
                   if (created.ok() && --notes_until_removal_ == 0) RemoveOldest();
                 });
}

void ZooKeeperJournal::Read(std::string_view document, size_t count, OnNotes done) {
  auto reading = std::make_shared<Reading>(
      Reading{.document = std::string(document), .names = {}, .done = std::move(done)});
  client_.List(path_, Watch::kNo, [this, reading, count](absl::StatusOr<Children> children) {
    if (absl::IsNotFound(children.status())) return reading->done(std::vector<rule::Note>());
    if (!children.ok()) return reading->done(children.status());
    reading->names = std::move(children->names);
    if (!reading->document.empty()) {
      const std::string begin = HashOf(reading->document) + "-";
      std::erase_if(reading->names, [&](const auto& name) { return !name.starts_with(begin); });
    }
    Order(std::move(reading->names),
          [this, reading, count](absl::StatusOr<std::vector<std::string>> names) {
            if (!names.ok()) return reading->done(names.status());
            if (names->size() > count) names->resize(count);
            reading->names.assign(names->rbegin(), names->rend());
            ReadNext(reading);
          });
  });
}

void ZooKeeperJournal::Order(
    std::vector<std::string> names,
    std::function<void(absl::StatusOr<std::vector<std::string>> names)> done) {
  auto ordering =
      std::make_shared<Ordering>(Ordering{.unanswered = names.size() + 1, .done = std::move(done)});
  const auto on_answer = [ordering] {
    if (--ordering->unanswered > 0) return;
    if (!ordering->status.ok()) return ordering->done(ordering->status);
    std::sort(ordering->notes.rbegin(), ordering->notes.rend());
    std::vector<std::string> ordered;
    for (auto& [zxid, name] : ordering->notes) ordered.push_back(std::move(name));
    ordering->done(std::move(ordered));
  };
  for (const std::string& name : names) {
    client_.Exists(Below(path_, name), Watch::kNo,
                   [ordering, on_answer, name](const absl::StatusOr<NodeStat>& stat) {
                     // The note may have been removed as one of the oldest.
                     if (stat.ok()) ordering->notes.emplace_back(stat->created_zxid, name);
                     if (!stat.ok() && !absl::IsNotFound(stat.status()))
                       ordering->status = stat.status();
                     on_answer();
                   });
  }
  on_answer();
}

void ZooKeeperJournal::ReadNext(const std::shared_ptr<Reading>& reading) {
  if (reading->names.empty()) return reading->done(std::move(reading->notes));
  const std::string name = std::move(reading->names.back());
  reading->names.pop_back();
  client_.Get(Below(path_, name), Watch::kNo, [this, reading, name](absl::StatusOr<Node> node) {
    // The note may have been removed as one of the oldest.
    if (!node.ok() && !absl::IsNotFound(node.status())) return reading->done(node.status());
    if (node.ok()) {
      reading->notes.push_back({.id = std::string(IdOf(name)),
                                .document = reading->document,
                                .text = std::move(node->data)});
    }
    ReadNext(reading);
  });
}

void ZooKeeperJournal::FindNoted(std::vector<Deletion> deletions, OnFound done) {
  auto search = std::make_shared<Search>(Search{.done = std::move(done)});
  client_.List(path_, Watch::kNo,
               [this, search, deletions = std::move(deletions)](absl::StatusOr<Children> children) {
                 if (!children.ok()) return search->done({});
                 std::sort(children->names.begin(), children->names.end());
                 for (const Deletion& deletion : deletions) {
                   const std::string begin = HashOf(deletion.document) + "-";
                   auto name =
                       std::lower_bound(children->names.begin(), children->names.end(), begin);
                   for (; name != children->names.end() && name->starts_with(begin); ++name)
                     search->notes.push_back({.name = *name, .deletion = deletion});
                 }
                 SearchNext(search);
               });
}

void ZooKeeperJournal::SearchNext(const std::shared_ptr<Search>& search) {
  if (search->notes.empty()) return search->done(search->found);
  Search::Note note = std::move(search->notes.back());
  search->notes.pop_back();
  client_.Get(
      Below(path_, note.name), Watch::kNo,
      [this, search, deletion = std::move(note.deletion)](const absl::StatusOr<Node>& node) {
        if (node.ok() && NotesDeletion(node->data, deletion))
          search->found.push_back(deletion.document);
        SearchNext(search);
      });
}

void ZooKeeperJournal::RemoveOldest() {
  notes_until_removal_ = kRemovalEvery;
  client_.List(path_, Watch::kNo, [this](absl::StatusOr<Children> children) {
    if (!children.ok() || children->names.size() <= kNotesMax) return;
    Order(std::move(children->names), [this](absl::StatusOr<std::vector<std::string>> names) {
      if (!names.ok()) return;
      for (size_t i = kNotesMax; i < names->size(); ++i)
        client_.Delete(Below(path_, (*names)[i]), -1, [](const absl::Status&) {});
    });
  });
}

}  // namespace headgate::watch::zookeeper
