// Rule files as a source of rules. A document is a file, and its name is the path of the file.
//
// A write replaces the whole file. Meanwhile the directory of the file is locked against other
// instances of Headgate, so of two that write over the same version at the same moment, one fails.
// Editors do not know of the lock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/net/event_loop.h"
#include "headgate/net/readable.h"
#include "headgate/rule/source.h"
#include "headgate/watch/file/file_watch.h"

namespace headgate::watch::file {

class FileSource final : public rule::Source {
 public:
  // `paths` as in file_text.h. The source runs on `loop`.
  FileSource(std::vector<std::string> paths, net::EventLoop& loop,
             const FileWatchOptions& options = {});

  // Reads the files and calls `on_documents` before it returns.
  void Subscribe(OnDocuments on_documents) override;
  // Works as if the files had changed: waits while a file is being written, at most
  // FileWatchOptions::delay_max.
  void Refresh() override;
  // Waits like Refresh if others have changed the files, and not at all if only Write has.
  void CatchUp(std::function<void()> done) override;
  std::optional<rule::SourceDocument> Place(std::string_view name) const override;
  absl::Status CheckRemoval(std::string_view name) const override;
  void Read(std::string_view name, OnDocument done) override;
  // Can also create a new file *.yaml or *.yml in a directory that is one of the paths.
  void Write(const rule::DocumentChange& change, OnWritten done) override;
  Figures figures() const override;

 private:
  void Step();
  absl::StatusOr<std::string> Change(const rule::DocumentChange& change);
  bool MayHold(std::string_view name) const;

  const std::vector<std::string> paths_;
  net::EventLoop& loop_;
  OnDocuments on_documents_;
  bool only_own_changes_ = false;  // only changes of our own are unread, as far as is known
  std::vector<std::function<void()>> catching_up_;  // until there are no unread changes
  FileWatch watch_;
  std::unique_ptr<net::Readable> readable_;
  net::Timer timer_;
};

}  // namespace headgate::watch::file
