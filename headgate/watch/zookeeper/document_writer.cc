#include "headgate/watch/zookeeper/document_writer.h"

#include <utility>

#include "headgate/watch/zookeeper/document_version.h"

namespace headgate::watch::zookeeper {

using client::zookeeper::Client;
using client::zookeeper::Created;
using client::zookeeper::CreateMode;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;

void WriteDocument(Client& client, const rule::DocumentChange& change,
                   rule::Source::OnWritten done) {
  if (change.expected_version.empty()) {
    client.Create(change.name, change.text.value_or(""), CreateMode::kPersistent,
                  [done = std::move(done)](const absl::StatusOr<Created>& created) {
                    if (absl::IsAlreadyExists(created.status()))
                      return done(absl::AbortedError("it exists already"));
                    if (!created.ok()) return done(created.status());
                    done(VersionText(created->stat.changed_zxid, created->stat.version));
                  });
    return;
  }
  const auto expected = ParseVersion(change.expected_version);
  if (!expected) return done(absl::AbortedError("it has another version"));
  // A node that was deleted and created again may have the same version, but has another zxid.
  client.Get(
      change.name, Watch::kNo,
      [&client, change, expected = *expected, done = std::move(done)](absl::StatusOr<Node> node) {
        if (absl::IsNotFound(node.status())) return done(absl::AbortedError("it is gone"));
        if (!node.ok()) return done(node.status());
        if (node->stat.changed_zxid != expected.zxid)
          return done(absl::AbortedError("it has another version"));
        if (!change.text) {
          return client.Delete(change.name, expected.version, [done](const absl::Status& status) {
            done(status.ok() ? absl::StatusOr<std::string>("") : status);
          });
        }
        client.Set(change.name, *change.text, expected.version,
                   [done](const absl::StatusOr<NodeStat>& stat) {
                     if (!stat.ok()) return done(stat.status());
                     done(VersionText(stat->changed_zxid, stat->version));
                   });
      });
}

}  // namespace headgate::watch::zookeeper
