// For tests: a real server, started by the test on a free port, with its files in a temporary
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
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/clock.h"
#include "headgate/net/blocking_client.h"
#include "headgate/net/listen.h"

extern char** environ;

namespace headgate {

// Below the ports that the system gives to connections, so that no connection takes it before the
// server does. The port 10,000 above is free too: a node of a Redis cluster takes it.
inline uint16_t FreePort() {
  const auto is_free = [](uint32_t port) {
    return net::ListenOn(*net::ParseEndpoint(fmt::format("127.0.0.1:{}", port)), 1, 1).ok();
  };
  // Each process begins elsewhere.
  static uint32_t next = static_cast<uint32_t>(::getpid()) * 101;
  while (true) {
    const uint32_t port = 10'000 + next++ % 12'000;
    if (is_free(port) && is_free(port + 10'000)) return static_cast<uint16_t>(port);
  }
}

class ServerProcess {
 public:
  // `name` is a part of the directory's name.
  explicit ServerProcess(std::string_view name) {
    std::string pattern =
        std::filesystem::temp_directory_path() / fmt::format("headgate-{}-XXXXXX", name);
    folder_ = ::mkdtemp(pattern.data());
  }
  ServerProcess(ServerProcess&& other) noexcept
      : folder_(std::exchange(other.folder_, "")), pid_(std::exchange(other.pid_, 0)) {}
  ~ServerProcess() {
    Kill();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  const std::string& folder() const { return folder_; }

  // Starts the program of these arguments, and waits until it is ready.
  void Start(const std::vector<std::string>& arguments, const std::function<bool()>& ready) {
    // The server ends with the test: otherwise ctest waits for its output after a crash.
    std::vector<std::string> words{"setpriv", "--pdeathsig", "KILL"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    HEADGATE_CHECK(::posix_spawnp(&pid_, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
    const base::SystemClock clock;
    const base::BootTime deadline = clock.BootNow() + std::chrono::seconds(20);
    while (!ready()) {
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

 private:
  std::string folder_;
  pid_t pid_ = 0;
};

// The first answer of the server at this port to `text`; empty if there is none.
inline std::string AskServer(uint16_t port, std::string_view text) {
  auto client = net::BlockingClient::Connect(*net::ParseEndpoint(fmt::format("127.0.0.1:{}", port)),
                                             std::chrono::seconds(5));
  if (!client.ok() || !client->Send(std::string(text)).ok()) return "";
  auto some = client->ReadSome();
  return some.ok() ? *some : "";
}

}  // namespace headgate
