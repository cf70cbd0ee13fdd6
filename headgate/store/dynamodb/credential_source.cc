#include "headgate/store/dynamodb/credential_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "headgate/base/text.h"
#include "headgate/files/files.h"

namespace headgate::store::dynamodb {

using absl::Status;
using base::Duration;
using namespace std::chrono_literals;

namespace {

constexpr size_t kFileBytesMax = size_t{1} << 20;
constexpr size_t kAnswerBytesMax = size_t{64} << 10;
constexpr Duration kAskTimeout = 2s;
// AWS provides new credentials of a role at least five minutes before the old ones expire.
constexpr Duration kRenewBefore = 10min;
// Other programs may change the files.
constexpr Duration kReadAgain = 60s;
constexpr Duration kRetryMax = 30s;
constexpr std::string_view kMachineRoles = "/latest/meta-data/iam/security-credentials/";

std::string_view NameOfKind(bool is_machine) {
  return is_machine ? "the instance metadata service" : "the container's credentials endpoint";
}

// The places that may give credentials without TLS: they are on this machine.
bool IsOnThisMachine(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "::1" ||
         host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23";
}

struct Place {
  std::string origin, target;
};

absl::StatusOr<Place> SplitUrl(const std::string& url) {
  const size_t scheme = url.find("://");
  const size_t slash = scheme == std::string::npos ? scheme : url.find('/', scheme + 3);
  Place place{.origin = url.substr(0, slash),
              .target = slash == std::string::npos ? "/" : url.substr(slash)};
  HEADGATE_ASSIGN_OR_RETURN(const client::http::Origin origin,
                            client::http::ParseOrigin(place.origin));
  if (!origin.tls && !IsOnThisMachine(origin.host))
    return absl::InvalidArgumentError("without TLS it must be on this machine");
  return place;
}

bool IsFieldText(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return base::IsControl(c); });
}

}  // namespace

CredentialSource::CredentialSource(net::EventLoop& loop, const base::Clock& clock,
                                   CredentialOptions options, OnChange on_change)
    : loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      random_(options_.seed),
      timer_(loop, [this] { Refresh(); }) {
  Refresh();
}

absl::StatusOr<std::shared_ptr<const Credentials>> CredentialSource::Get() const {
  const std::lock_guard lock(mutex_);
  if (credentials_ == nullptr) return state_;
  if (credentials_->expires_at && *credentials_->expires_at <= clock_.WallNow())
    return absl::UnavailableError(
        fmt::format("the credentials have expired; {}",
                    state_.ok() ? "new ones are asked for" : std::string(state_.message())));
  return credentials_;
}

void CredentialSource::Refuse(const Credentials& credentials) {
  {
    const std::lock_guard lock(mutex_);
    if (credentials_ == nullptr || *credentials_ != credentials) return;
  }
  loop_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    if (loop_.Now() - refreshed_at_ >= 5 * options_.pause_min) Refresh();
  });
}

CredentialSource::Kind CredentialSource::FindKind() const {
  const Environment& environment = options_.environment;
  if (!options_.profile.empty()) return Kind::kFile;
  if (!environment("AWS_ACCESS_KEY_ID").empty() || !environment("AWS_SECRET_ACCESS_KEY").empty())
    return Kind::kEnvironment;
  if (HasFile()) return Kind::kFile;
  if (!environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty() ||
      !environment("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty())
    return Kind::kContainer;
  if (base::EqualsIgnoreCase(environment("AWS_EC2_METADATA_DISABLED"), "true")) return Kind::kNone;
  return Kind::kMachine;
}

std::string CredentialSource::FilePath() const {
  const std::string given = options_.environment("AWS_SHARED_CREDENTIALS_FILE");
  if (!given.empty()) return given;
  const std::string home = options_.environment("HOME");
  return home.empty() ? "" : home + "/.aws/credentials";
}

// Whether the file has the default profile, or cannot be read: then it is the source.
bool CredentialSource::HasFile() const {
  const std::string path = FilePath();
  if (path.empty()) return false;
  const auto text = files::ReadRegularFile(path, kFileBytesMax);
  if (!text.ok()) return !absl::IsNotFound(text.status());
  return !absl::IsNotFound(CredentialsInFile(*text, "default").status());
}

void CredentialSource::Refresh() {
  if (std::exchange(is_refreshing_, true)) return;
  refreshed_at_ = loop_.Now();
  switch (FindKind()) {
    case Kind::kEnvironment: {
      auto found = CredentialsInEnvironment(options_.environment);
      if (!found.ok()) return Finish(found.status());
      return Finish(**std::move(found));
    }
    case Kind::kFile: {
      const std::string path = FilePath();
      const auto text = files::ReadRegularFile(path, kFileBytesMax);
      if (!text.ok()) return Finish(text.status());
      auto found =
          CredentialsInFile(*text, options_.profile.empty() ? "default" : options_.profile);
      if (found.ok()) return Finish(std::move(found));
      return Finish(absl::UnavailableError(
          fmt::format("{}: {}", path, std::string(found.status().message()))));
    }
    case Kind::kContainer:
      return AskContainer();
    case Kind::kMachine:
      return AskMachine();
    case Kind::kNone:
      break;
  }
  Finish(absl::NotFoundError(
      "neither the environment nor a shared credentials file nor a role has credentials"));
}

void CredentialSource::AskContainer() {
  const Environment& environment = options_.environment;
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  auto place = SplitUrl(relative.empty() ? environment("AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                         : options_.container_origin + relative);
  if (!place.ok() || !IsFieldText(place->target)) {
    return Finish(absl::InvalidArgumentError(fmt::format(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI cannot be used: {}",
        place.ok() ? "it has control characters" : std::string(place.status().message()))));
  }
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string path = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
      !path.empty()) {
    auto read = files::ReadFirstLine(path);  // again each time: it is replaced before it expires
    if (!read.ok()) return Finish(read.status());
    token = *std::move(read);
  }
  client::http::Request request{.method = "GET", .target = place->target};
  if (!IsFieldText(token))
    return Finish(absl::InvalidArgumentError("the container's token has control characters"));
  if (!token.empty()) request.fields.push_back("Authorization: " + token);
  Ask(place->origin, std::move(request),
      [this](const std::string& body) { Finish(CredentialsInJson(body)); });
}

void CredentialSource::AskMachine() {
  client::http::Request request{.method = "PUT",
                                .target = "/latest/api/token",
                                .fields = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}};
  std::string origin = options_.environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  while (origin.ends_with('/')) origin.pop_back();
  if (origin.empty()) origin = "http://169.254.169.254";
  Ask(origin, std::move(request), [this, origin](const std::string& token) {
    if (token.empty() || !IsFieldText(token))
      return Finish(absl::UnknownError("the instance metadata service gave no token"));
    const std::vector<std::string> fields = {"X-aws-ec2-metadata-token: " + token};
    Ask(origin, {.method = "GET", .target = std::string(kMachineRoles), .fields = fields},
        [this, origin, fields](const std::string& roles) {
          const std::string role = roles.substr(0, roles.find_first_of("\r\n"));
          if (role.empty() || !IsFieldText(role) || role.find(' ') != std::string::npos)
            return Finish(absl::NotFoundError("this machine has no role"));
          Ask(origin,
              {.method = "GET", .target = std::string(kMachineRoles) + role, .fields = fields},
              [this](const std::string& body) { Finish(CredentialsInJson(body)); });
        });
  });
}

void CredentialSource::Ask(const std::string& origin, client::http::Request request,
                           std::function<void(std::string body)> done) {
  auto& client = clients_[origin];
  if (client == nullptr) {
    auto parsed = client::http::ParseOrigin(origin);
    if (!parsed.ok()) {
      return Finish(
          absl::InvalidArgumentError(fmt::format("the endpoint of credentials cannot be used: {}",
                                                 std::string(parsed.status().message()))));
    }
    client = std::make_unique<client::http::Client>(
        loop_, client::http::ClientOptions{.origin = *std::move(parsed),
                                           .connections_max = 1,
                                           .warm_up = false,
                                           .answer_bytes_max = kAnswerBytesMax});
  }
  const std::string_view who = NameOfKind(FindKind() == Kind::kMachine);
  client->Send(
      std::move(request), loop_.Now() + kAskTimeout,
      [this, who, done = std::move(done)](absl::StatusOr<client::http::Answer> answer) {
        if (!answer.ok()) {
          return Finish(absl::UnavailableError(
              fmt::format("{} does not answer: {}", who, std::string(answer.status().message()))));
        }
        if (answer->status != 200) {
          return Finish(absl::UnavailableError(fmt::format("{} answered {}", who, answer->status)));
        }
        done(std::move(answer->body));
      });
}

void CredentialSource::Finish(absl::StatusOr<Credentials> found) {
  is_refreshing_ = false;
  Status state = found.status();
  if (found.ok() && found->expires_at && *found->expires_at <= clock_.WallNow())
    state = absl::UnavailableError("the credentials that were given have expired already");
  if (!state.ok()) {
    state = absl::UnavailableError(
        fmt::format("no credentials for DynamoDB: {}", std::string(state.message())));
  }
  Status before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(state_, state);
    if (state.ok()) credentials_ = std::make_shared<const Credentials>(*found);
  }
  if (!state.ok()) {
    Duration wait = options_.pause_min;
    for (uint32_t i = 0; i < failures_ && wait < kRetryMax; ++i) wait *= 2;
    ++failures_;
    SetNext(random_.Jitter(std::min(wait, kRetryMax), 25));
  } else {
    failures_ = 0;
    Duration wait = kReadAgain;
    if (found->expires_at) {
      const Duration left = *found->expires_at - clock_.WallNow();
      wait = std::max<Duration>(left > 2 * kRenewBefore ? left - kRenewBefore : left / 2,
                                options_.pause_min);
      wait = random_.Jitter(wait, 5);
    }
    SetNext(wait);
  }
  if (on_change_ && before != state) on_change_(state);
}

void CredentialSource::SetNext(Duration wait) { timer_.SetAfter(wait); }

}  // namespace headgate::store::dynamodb
