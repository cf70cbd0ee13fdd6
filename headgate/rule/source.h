// Where rules come from while Headgate runs: files, a ZooKeeper ensemble, an API. A source holds
// documents, each a text in the format of rule files; what they mean together is decided by whoever
// follows it (watch/rule_follower.h).
//
// A source says everything that it holds, or what is wrong: never a part. All of it happens on the
// thread of one event loop. Subscribers and `done` are called there, perhaps before the call
// returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/problem.h"

namespace headgate::rule {

struct SourceDocument {
  std::string name;  // as the source calls it, and problems do
  std::string text;
  // Names this state of the document; another text has another version. Never empty. Means nothing
  // else.
  std::string version;
  bool operator==(const SourceDocument&) const = default;
};

// Everything that a source holds at one moment, in the order in which it is to be loaded. With a
// problem there are no documents: they could not be read.
struct DocumentSet {
  std::vector<SourceDocument> documents;
  std::vector<Problem> problems;
  bool awaited = false;  // nothing is wrong but that nobody has put a document there yet
};

struct DocumentChange {
  std::string name;
  std::optional<std::string> text;  // nothing: the document is removed
  std::string expected_version;     // that it has now; empty: there is no such document
};

class Source {
 public:
  using OnDocuments = std::function<void(const DocumentSet& documents)>;
  using OnDocument = std::function<void(absl::StatusOr<SourceDocument> document)>;
  using OnWritten = std::function<void(absl::StatusOr<std::string> version)>;

  // How well it follows.
  struct Figures {
    bool polling = false;   // changes are found by looking for them now and then, not by being told
    uint64_t failures = 0;  // times that the system did not tell, or lost what it told
  };

  virtual ~Source() = default;

  // Calls `on_documents` as soon as the source knows what it holds, and again whenever that
  // changes. Once.
  virtual void Subscribe(OnDocuments on_documents) = 0;
  // Reads everything again, soon. The subscriber is called even if nothing has changed.
  virtual void Refresh() = 0;

  // One document. NotFound: there is none of this name. Unavailable: the source cannot be read.
  virtual void Read(std::string_view name, OnDocument done) = 0;
  // Changes one document if it still has the version that the caller has seen; answers its new
  // version, empty if it was removed. Aborted: it has another version. PermissionDenied: this
  // source does not hold such documents. Unavailable: it cannot be written; nothing has changed.
  virtual void Write(const DocumentChange& change, OnWritten done) = 0;

  // From any thread.
  virtual Figures figures() const = 0;
};

}  // namespace headgate::rule
