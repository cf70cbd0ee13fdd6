#include "headgate/app/runtime/file_checks.h"

#include <string>

#include "headgate/files/file_hint.h"
#include "headgate/follow/users.h"
#include "headgate/watch/file/file_journal.h"

namespace headgate::app {

void CheckAuditLog(Configuration& configuration) {
  const std::string& path = configuration.settings.audit_log;
  if (path.empty()) return;
  const absl::Status status = watch::file::FileJournal::Check(path);
  if (!status.ok())
    configuration.AddProblem("audit_log", status,
                             "name a file in a directory that this user may write");
}

void CheckUsers(Configuration& configuration) {
  const std::string& path = configuration.settings.users_file;
  if (path.empty()) return;
  const auto text = follow::ReadUsers(path);
  if (!text.ok()) {
    configuration.AddProblem(
        "users_file", text.status(),
        files::HintOnFile(path, "name a file of users; docs/reference/users.md shows one"));
  } else if (const auto users = follow::ParseUsers(path, *text); !users.ok()) {
    configuration.AddProblem("users_file", users.status(),
                             "`headgate hash-password` makes the hash of a password");
  }
}

}  // namespace headgate::app
