// A real redis-server for one test, and one connection to it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/net/blocking_client.h"
#include "headgate/wire/resp_reader.h"
#include "tests/redis/redis_process.h"

namespace headgate::redis_host {

class RedisServer {
 public:
  RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Sends commands, and reads this many replies.
  std::vector<wire::RespValue> Exchange(std::string_view commands, size_t reply_count);
  wire::RespValue Run(std::span<const std::string_view> command);
  wire::RespValue Run(std::initializer_list<std::string_view> command) {
    return Run(std::span(command.begin(), command.size()));
  }

 private:
  redis_test::RedisProcess process_;
  net::BlockingClient client_;
  wire::RespReader reader_;
  std::string input_;
};

}  // namespace headgate::redis_host
