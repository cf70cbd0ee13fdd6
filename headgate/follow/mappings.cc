#include "headgate/follow/mappings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"
#include "headgate/observe/problem_log.h"
#include "headgate/watch/file/file_text.h"

namespace headgate::follow {
namespace {

// A name in the file at `path`, as seen from the working directory.
std::string Resolved(const std::string& path, const std::string& name) {
  const std::filesystem::path file(name);
  return file.is_absolute() ? name : (std::filesystem::path(path).parent_path() / file).string();
}

// The mapping file and all files that it names, once each.
std::vector<std::string> AllFiles(const std::string& path, const mapping::LoadedMappings& loaded) {
  std::vector<std::string> files = {path};
  for (const std::string& name : loaded.files) {
    std::string file = Resolved(path, name);
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  }
  return files;
}

// The path stands in front of the message of a problem, so it is removed from the message.
std::string WithoutPath(std::string message, const std::string& path) {
  const size_t at = message.find(path);
  if (at == std::string::npos) return message;
  const bool is_first = at == 0;  // "PATH is longer than …", not "cannot open PATH: …"
  return message.erase(is_first ? 0 : at - 1, path.size() + 1);
}

mapping::LoadedMappings Load(const std::string& path, const absl::StatusOr<std::string>& text,
                             mapping::Asker asker) {
  if (!text.ok()) {
    return {.set = nullptr,
            .problems = {rule::WholeFileProblem(
                path, WithoutPath(std::string(text.status().message()), path),
                files::HintOnFile(path,
                                  "name a file of mappings; docs/reference/mappings.md lists what "
                                  "it contains"))},
            .warnings = {},
            .files = {}};
  }
  return mapping::LoadMappings(
      path, *text,
      [&](const std::string& name) {
        return files::ReadRegularFile(Resolved(path, name), watch::file::kFileBytesMax);
      },
      asker);
}

}  // namespace

mapping::LoadedMappings LoadMappingFile(const std::string& path, mapping::Asker asker) {
  return Load(path, files::ReadFile(path, watch::file::kFileBytesMax), asker);
}

std::vector<rule::Problem> ProblemsOfMappings(const std::string& path) {
  if (path.empty()) return {};
  return Load(path, files::ReadRegularFile(path, watch::file::kFileBytesMax),
              mapping::Asker::kOtherProxy)
      .problems;
}

Mappings::Mappings(std::string path, std::string header, gate::LiveMappings& live,
                   net::EventLoop& loop, observe::Log& log, mapping::Asker asker)
    : path_(std::move(path)),
      header_(std::move(header)),
      asker_(asker),
      live_(live),
      loop_(loop),
      log_(log) {}

std::vector<rule::Problem> Mappings::LoadFirst() {
  if (!header_.empty()) live_.Publish(mapping::MappingOfHeader(header_));
  if (path_.empty()) return {};
  mapping::LoadedMappings loaded =
      Load(path_, files::ReadRegularFile(path_, watch::file::kFileBytesMax), asker_);
  if (loaded.set == nullptr) return std::move(loaded.problems);
  Follow(AllFiles(path_, loaded));
  loading_first_ = false;
  return std::move(first_problems_);
}

void Mappings::Reload() {
  if (source_ != nullptr) source_->Refresh();
}

void Mappings::Follow(std::vector<std::string> paths) {
  paths_ = std::move(paths);
  former_source_ = std::move(source_);
  // A list that the changed mappings name may still be being written, and a part of it would block
  // fewer clients.
  source_ = std::make_unique<watch::file::FileSource>(
      paths_, loop_, watch::file::FileWatchOptions{.reads_at_once = loading_first_});
  source_->Subscribe([this, source = source_.get()](const rule::DocumentSet& documents) {
    if (source == source_.get()) OnDocuments(documents);
  });
}

void Mappings::OnDocuments(const rule::DocumentSet& documents) {
  if (!documents.problems.empty()) return Refuse(documents.problems);
  const auto text_of = [&](const std::string& path) {
    return std::find_if(
        documents.documents.begin(), documents.documents.end(),
        [&](const rule::SourceDocument& document) { return document.name == path; });
  };
  const auto main = text_of(path_);
  if (main == documents.documents.end()) return;
  mapping::LoadedMappings loaded = mapping::LoadMappings(
      path_, main->text,
      [&](const std::string& name) -> absl::StatusOr<std::string> {
        const std::string path = Resolved(path_, name);
        const auto known = text_of(path);
        if (known != documents.documents.end()) return known->text;
        return files::ReadRegularFile(path, watch::file::kFileBytesMax);
      },
      asker_);
  std::vector<std::string> files = AllFiles(path_, loaded);
  if (loaded.set == nullptr) return Refuse(std::move(loaded.problems));
  if (files != paths_) return Follow(std::move(files));
  for (const rule::Problem& warning : loaded.warnings) {
    log_.Warning("mappings.warning_found",
                 {{"reason", PlaceAndMessage(warning)}, {"hint", std::string_view(warning.hint)}});
  }
  const size_t count = loaded.set->mappings.size();
  live_.Publish(std::move(loaded.set));
  loaded_.fetch_add(1, std::memory_order_relaxed);
  log_.Info("mappings.loaded",
            {{"mappings", uint64_t{count}}, {"warnings", uint64_t{loaded.warnings.size()}}});
}

void Mappings::Refuse(std::vector<rule::Problem> problems) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (loading_first_) {
    first_problems_ = std::move(problems);
    return;
  }
  log_.Error("mappings.refused",
             {{"problems", uint64_t{rule::CountOf(problems)}},
              {"effect", std::string_view("the mappings in force stay in force")},
              {"hint",
               std::string_view(asker_ == mapping::Asker::kOwnProxy
                                    ? "`headgate validate --mappings FILE` shows the same problems"
                                    : "`headgate validate --auth FILE` shows the same problems")}});
  observe::LogProblems("mappings.problem_found", problems, log_);
}

void CollectMappings(std::span<const Mappings* const> followed, observe::Sink& sink) {
  using observe::Metric;
  uint64_t loaded = 0;
  uint64_t refused = 0;
  for (const Mappings* mappings : followed) {
    loaded += mappings->loaded();
    refused += mappings->refused();
  }
  sink.Set(Metric::kMappingReloads, {"loaded"}, loaded);
  sink.Set(Metric::kMappingReloads, {"refused"}, refused);
}

}  // namespace headgate::follow
