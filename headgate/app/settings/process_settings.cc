#include "headgate/app/settings/process_settings.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "headgate/base/random_secret.h"
#include "headgate/files/file_hint.h"
#include "headgate/files/files.h"

namespace headgate::app {

uint32_t ThreadsOf(const Settings& settings) {
  if (settings.threads != 0) return static_cast<uint32_t>(settings.threads);
  return std::max(1u, std::thread::hardware_concurrency());
}

observe::LogOptions LogOptionsOf(const Settings& settings) {
  return {.level_min = *observe::LevelByName(settings.log_level),
          .format =
              settings.log_format == "json" ? observe::LogFormat::kJson : observe::LogFormat::kText,
          .client_keys = settings.log_client_keys == "plain" ? observe::ClientKeys::kPlain
                                                             : observe::ClientKeys::kHashed,
          .secret = base::RandomHashSecret()};
}

void ReadCredential(Configuration& configuration) {
  Settings& settings = configuration.settings;
  if (settings.credential_file.empty()) return;
  auto credential = files::ReadFirstLine(settings.credential_file);
  if (!credential.ok()) {
    return configuration.AddProblem("credential_file", credential.status(),
                                    files::HintOnFile(settings.credential_file, ""));
  }
  settings.credential = *std::move(credential);
}

}  // namespace headgate::app
