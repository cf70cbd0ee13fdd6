// For tests: a real redis-server (or sentinel) on a free port, with its files in a temporary
// directory. Stops when its owner is destroyed.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/clock.h"
#include "headgate/net/blocking_client.h"
#include "headgate/net/listen.h"

extern char** environ;

namespace headgate::redis_test {

// Below the ports that the system gives to connections, so that no connection takes it before the
// server does.
inline uint16_t FreePort() {
  const auto is_free = [](uint32_t port) {
    return net::ListenOn(*net::ParseEndpoint(fmt::format("127.0.0.1:{}", port)), 1, 1).ok();
  };
  // Each process begins elsewhere.
  static uint32_t next = static_cast<uint32_t>(::getpid()) * 101;
  while (true) {
    const uint32_t port = 10'000 + next++ % 12'000;
    // A cluster node also takes the port 10,000 above its own.
    if (is_free(port) && is_free(port + 10'000)) return static_cast<uint16_t>(port);
  }
}

// The server that the tests run against: redis-server, or another one from the environment, such as
// Valkey.
inline std::string RedisServerBinary() {
  const char* const named = ::getenv("HEADGATE_REDIS_SERVER");
  return named != nullptr && *named != '\0' ? named : "redis-server";
}

class RedisProcess {
 public:
  using Arguments = std::vector<std::string>;

  explicit RedisProcess(const Arguments& arguments = {}, uint16_t port = FreePort()) : port_(port) {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-redis-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    arguments_ = {RedisServerBinary(),
                  "--port",
                  std::to_string(port_),
                  "--bind",
                  "127.0.0.1",
                  "--save",
                  "",
                  "--appendonly",
                  "no",
                  "--dir",
                  folder_,
                  "--unixsocket",
                  folder_ + "/socket",
                  "--logfile",
                  folder_ + "/log",
                  "--enable-debug-command",
                  "yes"};
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
    Start();
  }
  // A sentinel with these configuration lines.
  static RedisProcess Sentinel(std::string_view configuration) {
    RedisProcess sentinel(FreePort());
    const std::string file = sentinel.folder_ + "/sentinel.conf";
    std::ofstream(file) << fmt::format("port {}\nbind 127.0.0.1\ndir {}\nlogfile {}/log\n{}",
                                       sentinel.port_, sentinel.folder_, sentinel.folder_,
                                       configuration);
    sentinel.arguments_ = {RedisServerBinary(), file, "--sentinel"};
    sentinel.Start();
    return sentinel;
  }
  RedisProcess(RedisProcess&& other) noexcept
      : port_(other.port_),
        folder_(std::exchange(other.folder_, "")),
        arguments_(std::move(other.arguments_)),
        pid_(std::exchange(other.pid_, 0)) {}
  ~RedisProcess() {
    Kill();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  uint16_t port() const { return port_; }
  const std::string& folder() const { return folder_; }

  void Start() {
    // The server ends with the test: otherwise ctest waits for its output after a crash.
    std::vector<std::string> words{"setpriv", "--pdeathsig", "KILL"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    HEADGATE_CHECK(::posix_spawnp(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
    const base::SystemClock clock;
    const base::BootTime deadline = clock.BootNow() + std::chrono::seconds(20);
    while (Ask("PING").find("PONG") == std::string::npos &&
           Ask("PING").find("NOAUTH") == std::string::npos) {
      HEADGATE_CHECK(clock.BootNow() < deadline);
      std::this_thread::yield();
    }
  }
  void Kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  void Freeze() const { ::kill(pid_, SIGSTOP); }
  void Thaw() const { ::kill(pid_, SIGCONT); }

  // The raw reply to an inline command; empty if there is no answer.
  std::string Ask(std::string_view command) const {
    auto client = net::BlockingClient::Connect(
        *net::ParseEndpoint(fmt::format("127.0.0.1:{}", port_)), std::chrono::seconds(5));
    if (!client.ok() || !client->Send(std::string(command) + "\r\n").ok()) return "";
    auto some = client->ReadSome();
    return some.ok() ? *some : "";
  }

 private:
  explicit RedisProcess(uint16_t port) : port_(port) {
    std::string pattern = std::filesystem::temp_directory_path() / "headgate-redis-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }

  uint16_t port_;
  std::string folder_;
  Arguments arguments_;
  pid_t pid_ = 0;
};

}  // namespace headgate::redis_test
