#include "tests/redis/redis_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "headgate/base/check.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::redis_host {
namespace {

constexpr base::Duration kTimeout = std::chrono::seconds(30);
constexpr int kStartTries = 1000;
constexpr int kStartPauseMs = 10;

}  // namespace

RedisServer::RedisServer() {
  std::string folder = (std::filesystem::temp_directory_path() / "headgate_redis_XXXXXX").string();
  HEADGATE_CHECK(mkdtemp(folder.data()) != nullptr);
  folder_ = folder;
  const std::string socket = folder + "/socket";
  process_ = fork();
  HEADGATE_CHECK(process_ >= 0);
  if (process_ == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket.c_str(), "--dir", folder.c_str(),
           "--save", "", "--appendonly", "no", nullptr);
    _exit(127);
  }
  const net::Endpoint endpoint{.kind = net::Endpoint::Kind::kUnix, .address = socket, .port = 0};
  for (int i = 0; i < kStartTries; ++i) {
    int status = 0;
    HEADGATE_CHECK(waitpid(process_, &status, WNOHANG) == 0);  // no redis-server here: apt-get install redis-server
    if (auto client = net::BlockingClient::Connect(endpoint, kTimeout); client.ok()) {
      client_ = *std::move(client);
      return;
    }
    poll(nullptr, 0, kStartPauseMs);
  }
  HEADGATE_CHECK(client_.has_value());
}

RedisServer::~RedisServer() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  std::filesystem::remove_all(folder_);
}

std::vector<wire::RespValue> RedisServer::Exchange(std::string_view commands, size_t reply_count) {
  HEADGATE_CHECK(client_->Send(commands).ok());
  std::vector<wire::RespValue> replies;
  while (replies.size() < reply_count) {
    size_t consumed = 0;
    const auto step = reader_.Read(input_, consumed);
    input_.erase(0, consumed);
    HEADGATE_CHECK(step != wire::RespReader::Step::kError);
    if (step == wire::RespReader::Step::kValue) {
      replies.push_back(std::move(reader_.value()));
      continue;
    }
    auto more = client_->ReadSome();
    HEADGATE_CHECK(more.ok() && !more->empty());
    input_ += *more;
  }
  return replies;
}

wire::RespValue RedisServer::Run(std::span<const std::string_view> command) {
  std::string bytes;
  wire::RespWriter writer(bytes, wire::RespVersion::k2);
  writer.Array(command.size());
  for (const std::string_view word : command) writer.Bulk(word);
  return std::move(Exchange(bytes, 1)[0]);
}

}  // namespace headgate::redis_host
