// For tests: a real redis-server (or sentinel) on a free port.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server_process.h"

namespace headgate::redis_test {

// The server that the tests run against: redis-server, or another one from the environment, such as
// Valkey.
inline std::string RedisServerBinary() {
  const char* const named = ::getenv("HEADGATE_REDIS_SERVER");
  return named != nullptr && *named != '\0' ? named : "redis-server";
}

class RedisProcess {
 public:
  using Arguments = std::vector<std::string>;

  explicit RedisProcess(const Arguments& arguments = {}, uint16_t port = FreePort())
      : RedisProcess(port) {
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
                  folder(),
                  "--unixsocket",
                  folder() + "/socket",
                  "--logfile",
                  folder() + "/log",
                  "--enable-debug-command",
                  "yes"};
    arguments_.insert(arguments_.end(), arguments.begin(), arguments.end());
    Start();
  }
  // A sentinel with these configuration lines.
  static RedisProcess Sentinel(std::string_view configuration) {
    RedisProcess sentinel(FreePort());
    const std::string file = sentinel.folder() + "/sentinel.conf";
    std::ofstream(file) << fmt::format("port {}\nbind 127.0.0.1\ndir {}\nlogfile {}/log\n{}",
                                       sentinel.port_, sentinel.folder(), sentinel.folder(),
                                       configuration);
    sentinel.arguments_ = {RedisServerBinary(), file, "--sentinel"};
    sentinel.Start();
    return sentinel;
  }

  uint16_t port() const { return port_; }
  const std::string& folder() const { return process_.folder(); }

  void Start() {
    process_.Start(arguments_, [this] {
      return Ask("PING").find("PONG") != std::string::npos ||
             Ask("PING").find("NOAUTH") != std::string::npos;
    });
  }
  void Kill() { process_.Kill(); }
  void Freeze() const { process_.Freeze(); }
  void Thaw() const { process_.Thaw(); }

  // The raw reply to an inline command; empty if there is no answer.
  std::string Ask(std::string_view command) const {
    return AskServer(port_, std::string(command) + "\r\n");
  }

 private:
  explicit RedisProcess(uint16_t port) : port_(port) {}

  uint16_t port_;
  ServerProcess process_{"redis"};
  Arguments arguments_;
};

}  // namespace headgate::redis_test
