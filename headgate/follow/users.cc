#include "headgate/follow/users.h"

#include <fmt/format.h>

#include <vector>

#include "headgate/files/files.h"

namespace headgate::follow {
namespace {

constexpr size_t kFileBytesMax = size_t{4} << 20;

}  // namespace

absl::StatusOr<std::string> ReadUsers(const std::string& path) {
  return files::ReadRegularFile(path, kFileBytesMax);
}

absl::StatusOr<access::UserTable> ParseUsers(const std::string& path, std::string_view text) {
  absl::StatusOr<access::UserTable> table = access::ParseUsers(text);
  if (table.ok()) return table;
  return absl::Status(table.status().code(),
                      fmt::format("{}: {}", path, std::string(table.status().message())));
}

absl::Status Users::LoadFirst() {
  if (path_.empty()) return absl::OkStatus();
  source_ = std::make_unique<watch::file::FileSource>(std::vector<std::string>{path_}, loop_);
  absl::Status first = absl::OkStatus();
  source_->Subscribe([&](const rule::DocumentSet& documents) { first = Load(documents).status(); });
  source_->Subscribe([this](const rule::DocumentSet& documents) { OnChange(documents); });
  return first;
}

void Users::Reload() {
  if (source_ != nullptr) source_->Refresh();
}

// Parses the given text and does not read the file again, which may be in the middle of its next
// change.
absl::StatusOr<size_t> Users::Load(const rule::DocumentSet& documents) {
  if (!documents.problems.empty())
    return absl::UnavailableError(PlaceAndMessage(documents.problems.front()));
  const std::string& text = documents.documents.front().text;
  if (text.size() > kFileBytesMax) {
    return absl::ResourceExhaustedError(
        fmt::format("{} is longer than {} bytes", path_, kFileBytesMax));
  }
  HEADGATE_ASSIGN_OR_RETURN(access::UserTable table, ParseUsers(path_, text));
  const size_t users = table.users.size();
  access_.Replace(std::make_shared<const access::UserTable>(std::move(table)));
  return users;
}

void Users::OnChange(const rule::DocumentSet& documents) {
  const absl::StatusOr<size_t> users = Load(documents);
  if (users.ok()) {
    loaded_.fetch_add(1, std::memory_order_relaxed);
    log_.Info("users.loaded", {{"file", path_}, {"users", uint64_t{*users}}});
    return;
  }
  refused_.fetch_add(1, std::memory_order_relaxed);
  log_.Error("users.refused",
             {{"file", path_},
              {"reason", std::string(users.status().message())},
              {"effect", std::string_view("the users stay as they are")},
              {"hint", std::string_view("correct the file; docs/reference/users.md shows it")}});
}

void Users::Collect(observe::Sink& sink) const {
  using observe::Metric;
  sink.Set(Metric::kUserReloads, {"loaded"}, loaded_.load(std::memory_order_relaxed));
  sink.Set(Metric::kUserReloads, {"refused"}, refused_.load(std::memory_order_relaxed));
  for (size_t i = 0; i < access::Login::kResults; ++i) {
    const auto result = static_cast<access::Login::Result>(i);
    sink.Set(Metric::kLogins, {access::Name(result)}, access_.logins(result));
  }
}

}  // namespace headgate::follow
