#include "headgate/watch/file/file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "headgate/base/hash.h"
#include "headgate/files/files.h"
#include "headgate/rule/quote.h"

namespace headgate::watch::file {
namespace {

namespace fs = std::filesystem;

// The mode of a new rule file. Rules are not secret: everyone who can read the other files should
// be able to read this one.
constexpr uint32_t kNewFileMode = 0644;

// Equal texts have equal versions on every machine. The hash needs no secret, because nobody gains
// from two texts with the same version.
std::string VersionOf(std::string_view text) {
  const base::Hash128 hash = base::HashBytes(base::HashSecret{}, base::KeyKind::kRaw, text);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

rule::DocumentSet DocumentsOf(FilesRead&& read) {
  rule::DocumentSet set{
      .documents = {}, .problems = std::move(read.problems), .awaited = read.awaited};
  for (FileText& file : read.files) {
    std::string version = VersionOf(file.text);
    set.documents.push_back({.name = std::move(file.path),
                             .text = std::move(file.text),
                             .version = std::move(version)});
  }
  return set;
}

absl::StatusOr<rule::SourceDocument> DocumentOf(const std::string& path) {
  absl::StatusOr<std::string> text = files::ReadRegularFile(path, kFileBytesMax);
  if (!text.ok()) return std::move(text).status();
  std::string version = VersionOf(*text);
  return rule::SourceDocument{
      .name = path, .text = *std::move(text), .version = std::move(version)};
}

absl::Status Remove(const std::string& path) {
  std::error_code error;
  if (fs::remove(path, error)) return absl::OkStatus();
  return absl::UnavailableError(fmt::format("cannot remove {}: {}", path, error.message()));
}

// Needs the lock of the directory.
absl::Status Replace(const std::string& target, std::string_view text) {
  std::error_code error;
  const auto mode = static_cast<uint32_t>(fs::status(target, error).permissions());
  // The name of the temporary file is unique to this process, and hidden, so it is not a rule file.
  const fs::path place(target);
  const fs::path temporary =
      place.parent_path() / fmt::format(".{}.headgate-new", place.filename().native());
  return files::ReplaceFile(
      target, [&](const auto& write) { write(text); },
      {.mode = error ? kNewFileMode : mode, .temporary = temporary.native(), .keep_owner = true});
}

}  // namespace

FileSource::FileSource(std::vector<std::string> paths, net::EventLoop& loop,
                       const FileWatchOptions& options)
    : paths_(paths),
      loop_(loop),
      watch_(std::move(paths), options),
      timer_(loop, [this] { Step(); }) {}

void FileSource::Subscribe(OnDocuments on_documents) {
  on_documents_ = std::move(on_documents);
  Step();
}

void FileSource::Refresh() {
  watch_.ReadAgain(loop_.Now());
  Step();
}

void FileSource::CatchUp(std::function<void()> done) {
  if (!watch_.Look(loop_.Now())) return done();
  if (only_own_changes_) watch_.Hurry();
  catching_up_.push_back(std::move(done));
  Step();
}

void FileSource::Step() {
  if (readable_ == nullptr && watch_.fd() >= 0) {
    readable_ = std::make_unique<net::Readable>(loop_, watch_.fd(), [this] { Step(); });
  }
  std::optional<FilesRead> read = watch_.Step(loop_.Now());
  timer_.Set(watch_.wake_at());
  if (read.has_value()) on_documents_(DocumentsOf(*std::move(read)));
  if (watch_.has_changes()) return;
  only_own_changes_ = false;
  for (const std::function<void()>& done : std::exchange(catching_up_, {})) done();
}

rule::Source::Figures FileSource::figures() const {
  return {.polling = watch_.polling(), .failures = watch_.failures()};
}

bool FileSource::MayHold(std::string_view name) const {
  const fs::path path(name);
  const bool is_rule_file = (path.extension() == ".yaml" || path.extension() == ".yml") &&
                            !path.filename().string().starts_with('.') &&
                            path.filename().native().size() <= kFileNameBytesMax &&
                            rule::Printable(name) == name;
  // One file has one name: comparing paths would take a//b for a/b.
  return std::any_of(paths_.begin(), paths_.end(), [&](const std::string& place) {
    return name == place || (is_rule_file && fs::is_directory(place) &&
                             name == (fs::path(place) / path.filename()).native());
  });
}

std::optional<rule::SourceDocument> FileSource::Place(std::string_view name) const {
  if (!MayHold(name)) return std::nullopt;
  return rule::SourceDocument{.name = std::string(name), .text = {}, .version = {}};
}

// Without a rule file, the last good rules stay in force.
absl::Status FileSource::CheckRemoval(std::string_view name) const {
  const fs::path path(name);
  if (std::any_of(paths_.begin(), paths_.end(),
                  [&](const std::string& place) { return path == fs::path(place); })) {
    return absl::FailedPreconditionError(fmt::format(
        "{} is named by the setting `rules`, so it has to exist; remove its rules instead",
        rule::Quote(name)));
  }
  const std::string directory = path.parent_path();
  if (StampFiles({&directory, 1}).size() > 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("{} is the last rule file of its directory, which has to have one; remove its "
                  "rules instead",
                  rule::Quote(name)));
}

void FileSource::Read(std::string_view name, OnDocument done) {
  if (!MayHold(name))
    return done(
        absl::NotFoundError(fmt::format("{} is not one of the rule files", rule::Quote(name))));
  done(DocumentOf(std::string(name)));
}

void FileSource::Write(const rule::DocumentChange& change, OnWritten done) {
  only_own_changes_ = only_own_changes_ || !watch_.Look(loop_.Now());
  done(Change(change));
}

absl::StatusOr<std::string> FileSource::Change(const rule::DocumentChange& change) {
  if (!MayHold(change.name)) {
    return absl::PermissionDeniedError(fmt::format(
        "{} is neither one of the rule files nor a *.yaml file in one of their directories",
        rule::Quote(change.name)));
  }
  if (change.text && change.text->size() > kFileBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("a rule file may have at most {} bytes", kFileBytesMax));
  }
  HEADGATE_ASSIGN_OR_RETURN(const std::string target, files::FollowLinks(change.name));
  HEADGATE_ASSIGN_OR_RETURN(const auto lock, files::DirectoryLock::OfFile(target));
  const absl::StatusOr<rule::SourceDocument> now = DocumentOf(change.name);
  if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
  const std::string version = now.ok() ? now->version : "";
  if (version != change.expected_version) {
    return absl::AbortedError(
        version.empty()
            ? fmt::format("{} no longer exists", rule::Quote(change.name))
            : fmt::format("{} has changed: its version is {}", rule::Quote(change.name), version));
  }
  if (!change.text) {
    HEADGATE_RETURN_IF_ERROR(CheckRemoval(change.name));
    if (now.ok()) HEADGATE_RETURN_IF_ERROR(Remove(change.name));
    return "";
  }
  HEADGATE_RETURN_IF_ERROR(Replace(target, *change.text));
  return VersionOf(*change.text);
}

}  // namespace headgate::watch::file
