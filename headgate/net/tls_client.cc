#include "headgate/net/tls_client.h"

#include <sys/stat.h>

#include <utility>

namespace headgate::net {

absl::StatusOr<std::unique_ptr<TlsClient>> TlsClient::Load(const TlsOptions& options) {
  std::unique_ptr<TlsClient> client(new TlsClient(options));
  client->stamps_ = client->StampsNow();
  HEADGATE_ASSIGN_OR_RETURN(client->context_, TlsContext::Load(options));
  return client;
}

const std::shared_ptr<TlsContext>& TlsClient::Current() {
  const Stamps now = StampsNow();
  if (now == stamps_) return context_;
  absl::StatusOr<std::shared_ptr<TlsContext>> loaded = TlsContext::Load(options_);
  if (!loaded.ok()) return context_;
  context_ = *std::move(loaded);
  stamps_ = now;
  return context_;
}

TlsClient::Stamp TlsClient::StampOf(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
  const auto ns = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.inode = info.st_ino,
          .size_bytes = info.st_size,
          .modified_ns = ns(info.st_mtim),
          .changed_ns = ns(info.st_ctim)};
}

TlsClient::Stamps TlsClient::StampsNow() const {
  return {StampOf(options_.ca_file), StampOf(options_.certificate_file),
          StampOf(options_.key_file)};
}

}  // namespace headgate::net
