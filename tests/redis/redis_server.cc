#include "tests/redis/redis_server.h"

#include "headgate/base/check.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::redis_host {
namespace {

constexpr base::Duration kTimeout = std::chrono::seconds(30);

}  // namespace

RedisServer::RedisServer()
    : client_(*net::BlockingClient::Connect(
          *net::ParseEndpoint(fmt::format("127.0.0.1:{}", process_.port())), kTimeout)) {}

std::vector<wire::RespValue> RedisServer::Exchange(std::string_view commands, size_t reply_count) {
  HEADGATE_CHECK(client_.Send(commands).ok());
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
    auto more = client_.ReadSome();
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
