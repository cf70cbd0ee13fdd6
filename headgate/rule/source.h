// A source of rules while Headgate runs: files, a ZooKeeper ensemble, an API. A source holds
// documents, each a text in the format of rule files. The follower of the source
// (watch/rule_follower.h) combines them into rules.
//
// A source reports either everything that it holds or its problems, never a part. Everything
// happens on the thread of one event loop. Subscribers and `done` are called on that thread,
// possibly before the call returns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/rule/journal.h"
#include "headgate/rule/problem.h"

namespace headgate::rule {

struct SourceDocument {
  std::string name;  // the source's name for the document, also shown in problems
  std::string text;
  // Identifies this state of the document: a different text has a different version. Opaque, and
  // never empty.
  std::string version;
  // If set, the text is the limit of this API key (read/key_limit.h), not a rule file.
  std::optional<std::string> limit_of{};
  bool operator==(const SourceDocument&) const = default;
};

// Everything that a source holds at one moment, in loading order. If there is a problem,
// `documents` is empty, because they could not all be read, unless the documents of the source
// stand alone.
struct DocumentSet {
  std::vector<SourceDocument> documents;
  std::vector<Problem> problems;
  bool awaited = false;  // the only problem is that the document has not been created yet
  bool operator==(const DocumentSet&) const = default;
};

struct DocumentChange {
  std::string name;
  std::optional<std::string> text;  // absent: the document is removed
  std::string expected_version;     // its current version; empty: the document must not exist
};

// The rules that an instance has in force, as it shows them to others.
struct RulesInForce {
  uint64_t generation = 0;    // counts the sets of rules that were put in force; 0: none yet
  std::string fingerprint{};  // equal for equal documents in the same order; empty: none yet
};

class Source {
 public:
  using OnDocuments = std::function<void(const DocumentSet& documents)>;
  using OnDocument = std::function<void(absl::StatusOr<SourceDocument> document)>;
  using OnWritten = std::function<void(absl::StatusOr<std::string> version)>;

  // How the connection to a source changed.
  struct News {
    enum class Kind {
      kFollowed,        // everything was read, and changes are followed
      kLost,            // changes are not seen until it is followed again
      kChangesMissed,   // a comparison found changes that it was not notified of; they are read now
      kCopyUsed,        // the documents of a copy on the disk are used until it is followed
      kCopyNotWritten,  // the copy on the disk stays as it was
      kCopyWritten,     // after kCopyNotWritten: the copy has the documents again
    };
    Kind kind = Kind::kFollowed;
    std::string source;  // its name, without credentials
    // Why the source is lost or the copy could not be written, or which changes were missed.
    std::string reason{};
    std::string copy{};  // the file, if the news is about a copy
  };
  using OnNews = std::function<void(const News& news)>;

  // How well the source follows changes.
  struct Figures {
    bool polling = false;   // changes are found by polling, not by notifications
    uint64_t failures = 0;  // times that notifications failed or were lost
    base::Duration age{
        0};  // for how long the source has not known whether its documents are current; else 0
    uint64_t kept = 0;    // documents that stay in force although they were deleted
    uint64_t reads = 0;   // of documents or lists of them, over a network
    uint64_t missed = 0;  // changes without a notification, found by a comparison
  };

  virtual ~Source() = default;

  // Calls `on_news` whenever the connection to the source changes. A source without a connection
  // never does. Call it once, before Subscribe.
  virtual void Tell(OnNews /*on_news*/) {}
  // Calls `on_documents` as soon as the source knows what it holds, and again whenever that
  // changes. Call it once.
  virtual void Subscribe(OnDocuments on_documents) = 0;
  // Whether each document is loaded or refused independently of the others. Otherwise a problem in
  // one document refuses all.
  virtual bool documents_stand_alone() const { return false; }
  // Whether the source keeps documents until an operator confirms that their deletion was meant, or
  // refuses older ones that an ensemble restored.
  virtual bool awaits_confirmation() const { return false; }
  virtual void Confirm() {}
  // Reads everything again soon, and calls the subscriber even if nothing has changed.
  virtual void Refresh() = 0;
  // Calls `done` when the subscriber knows everything that the source holds now, including the
  // latest writes; or at once if the source cannot be read. It may take as long as the source waits
  // for files that are being written.
  virtual void CatchUp(std::function<void()> done) { done(); }

  // The document of this name, without text and version, if this source could hold it.
  virtual std::optional<SourceDocument> Place(std::string_view name) const = 0;
  // The name of the document with the limit of this API key; empty if it holds no such documents.
  // From any thread.
  virtual std::string NameOfLimit(std::string_view /*key*/) const { return {}; }
  // Why removing this document would not take its rules away; OK if it would.
  virtual absl::Status CheckRemoval(std::string_view /*name*/) const { return absl::OkStatus(); }
  // The journal that notes changes of these documents; null: there is none.
  virtual Journal* journal() { return nullptr; }

  // Reads one document. NotFound: no document has this name. Unavailable: the source cannot be
  // read.
  virtual void Read(std::string_view name, OnDocument done) = 0;
  // Changes one document if it still has the version that the caller expects. Returns its new
  // version, or an empty one if it was removed. Aborted: it has another version. PermissionDenied:
  // this source does not hold such documents. Unavailable: the source cannot be written; nothing
  // has changed. Unknown: it may have changed, so read it.
  virtual void Write(const DocumentChange& change, OnWritten done) = 0;

  // Callable from any thread.
  virtual Figures figures() const = 0;

  // ---- The instances that follow this source, if it knows them.

  // Shows the others which rules this instance has in force.
  virtual void Show(const RulesInForce& /*rules*/) {}
  // The number last counted, with this instance; 0 if the source does not count. From any thread.
  virtual uint32_t instances() const { return 0; }
  // Why the source refuses to show this instance or to count; empty if it does not.
  virtual std::string instances_error() const { return {}; }
};

}  // namespace headgate::rule
