// Gets the credentials of this machine, and new ones before they expire:
//
//   1. AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//   2. the shared credentials file: AWS_SHARED_CREDENTIALS_FILE, or ~/.aws/credentials
//   3. the role of the container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI
//   4. the role of the machine: the instance metadata service, version 2
//
// The first source that exists is used, even if it fails. If the settings name a profile, only the
// file counts. New credentials are asked for ten minutes before the old ones expire, or after half
// of their time if they have less than 20 minutes left. If that fails, it is tried again, and the
// old ones are used until they expire. Variables and files are read again every minute.
//
// One for the process, on the loop of its thread; the credentials can be read from any thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"
#include "headgate/base/status.h"
#include "headgate/client/http/client.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/dynamodb/credentials.h"
#include "headgate/store/dynamodb/environment.h"

namespace headgate::store::dynamodb {

struct CredentialOptions {
  std::string profile{};  // of the shared credentials file; empty: "default", or another source
  Environment environment{};
  uint64_t seed = 0;  // for jitter
  // The shortest time between two attempts. After a server has refused credentials, the pause is
  // five times as long.
  base::Duration pause_min = std::chrono::seconds(1);
  // The endpoint of the roles of containers, for tests.
  std::string container_origin = "http://169.254.170.2";
};

class CredentialSource {
 public:
  // Called on the loop's thread when there are new credentials, or none could be got.
  using OnChange = std::function<void(const absl::Status& state)>;

  // Both must outlive it.
  CredentialSource(net::EventLoop& loop, const base::Clock& clock, CredentialOptions options,
                   OnChange on_change = {});
  CredentialSource(const CredentialSource&) = delete;

  // From any thread: the credentials, or why there are none.
  absl::StatusOr<std::shared_ptr<const Credentials>> Get() const;

  // From any thread: a server refuses these credentials. Gets others, at most once in five pauses.
  void Refuse(const Credentials& credentials);

 private:
  enum class Kind : uint8_t { kEnvironment, kFile, kContainer, kMachine, kNone };

  void Refresh();
  Kind FindKind() const;
  std::string FilePath() const;
  bool HasFile() const;
  void AskContainer();
  void AskMachine();
  // Sends a request to an endpoint; a failure ends this refresh.
  void Ask(const std::string& origin, client::http::Request request,
           std::function<void(std::string body)> done);
  void Finish(absl::StatusOr<Credentials> found);
  void SetNext(base::Duration wait);

  net::EventLoop& loop_;
  const base::Clock& clock_;
  const CredentialOptions options_;
  const OnChange on_change_;
  base::Random random_;
  std::map<std::string, std::unique_ptr<client::http::Client>> clients_;  // by origin
  bool is_refreshing_ = false;
  uint32_t failures_ = 0;  // in a row
  base::BootTime refreshed_at_{0};
  net::Timer timer_;

  mutable std::mutex mutex_;
  // Guarded by mutex_:
  std::shared_ptr<const Credentials> credentials_;
  absl::Status state_ = absl::UnavailableError("the credentials are not read yet");
  // Expires with this object, so that a task that another thread posted does nothing afterwards.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace headgate::store::dynamodb
