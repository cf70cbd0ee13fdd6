#include "headgate/watch/zookeeper/zookeeper_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "headgate/base/hash.h"
#include "headgate/zookeeper/node_name.h"

namespace headgate::watch::zookeeper {
namespace {

using headgate::zookeeper::Below;
using headgate::zookeeper::Children;
using headgate::zookeeper::Created;
using headgate::zookeeper::CreateMode;
using headgate::zookeeper::Node;
using headgate::zookeeper::NodeStat;
using headgate::zookeeper::Watch;

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

void SortNewestFirst(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return IdOf(a) > IdOf(b); });
}

}  // namespace

struct ZooKeeperJournal::Reading {
  std::string document;
  std::vector<std::string> names;  // the newest last
  std::vector<rule::Note> notes{};
  OnNotes done;
};

ZooKeeperJournal::ZooKeeperJournal(headgate::zookeeper::Client& client, std::string path)
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
    SortNewestFirst(reading->names);
    if (reading->names.size() > count) reading->names.resize(count);
    std::reverse(reading->names.begin(), reading->names.end());
    ReadNext(reading);
  });
}

void ZooKeeperJournal::ReadNext(const std::shared_ptr<Reading>& reading) {
  if (reading->names.empty()) return reading->done(std::move(reading->notes));
  const std::string name = std::move(reading->names.back());
  reading->names.pop_back();
  client_.Get(Below(path_, name), Watch::kNo, [this, reading, name](absl::StatusOr<Node> node) {
    // It may have been removed as one of the oldest.
    if (!node.ok() && !absl::IsNotFound(node.status())) return reading->done(node.status());
    if (node.ok()) {
      reading->notes.push_back({.id = std::string(IdOf(name)),
                                .document = reading->document,
                                .text = std::move(node->data)});
    }
    ReadNext(reading);
  });
}

void ZooKeeperJournal::RemoveOldest() {
  notes_until_removal_ = kRemovalEvery;
  client_.List(path_, Watch::kNo, [this](absl::StatusOr<Children> children) {
    if (!children.ok() || children->names.size() <= kNotesMax) return;
    SortNewestFirst(children->names);
    for (size_t i = kNotesMax; i < children->names.size(); ++i)
      client_.Delete(Below(path_, children->names[i]), -1, [](const absl::Status&) {});
  });
}

}  // namespace headgate::watch::zookeeper
