// A real redis-server for one test: on a port and in a folder of its own, gone when the test is. Persists nothing.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/net/blocking_client.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::redis_host {

class RedisServer {
 public:
  // Stops the test where there is no redis-server.
  RedisServer();
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Sends what was written as commands, and reads so many replies.
  std::vector<wire::RespValue> Exchange(std::string_view commands, size_t reply_count);
  wire::RespValue Run(std::span<const std::string_view> command);
  wire::RespValue Run(std::initializer_list<std::string_view> command) {
    return Run(std::span(command.begin(), command.size()));
  }

 private:
  pid_t process_ = 0;
  std::string folder_;
  std::optional<net::BlockingClient> client_;
  wire::RespReader reader_;
  std::string input_;
};

}  // namespace headgate::redis_host
