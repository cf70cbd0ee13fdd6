#include "headgate/net/connector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <optional>

#include "headgate/net/listen.h"

namespace headgate::net {
namespace connector_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct ConnectorTest : ::testing::Test {
  // A listening socket; its address is then in `bound`.
  FileDescriptor Listening(const std::string& text) {
    auto sockets = ListenOn(*ParseEndpoint(text), 1, 8);
    EXPECT_TRUE(sockets.ok()) << sockets.status();
    bound = sockets->bound;
    return std::move(sockets->by_loop[0][0]);
  }
  Connector::Done Keep() {
    return [this](absl::StatusOr<FileDescriptor> socket) { result.emplace(std::move(socket)); };
  }
  bool Ends() {
    return loop.RunUntil([&] { return result.has_value(); }, 10s);
  }

  base::SystemClock clock;
  EventLoop loop{clock};
  Endpoint bound;
  std::optional<absl::StatusOr<FileDescriptor>> result;
};

TEST_F(ConnectorTest, ConnectsToAnAddressAndToASocketFile) {
  for (const std::string& text : {std::string("127.0.0.1:0"), std::string("[::1]:0"),
                                  "unix:" + ::testing::TempDir() + "connector_test.sock"}) {
    result.reset();
    const FileDescriptor listening = Listening(text);
    const Connector connector(loop, TargetOf(bound), Keep());
    EXPECT_FALSE(result.has_value()) << "never from within the constructor";
    ASSERT_TRUE(Ends()) << text;
    ASSERT_TRUE(result->ok()) << text << ": " << result->status();
    const FileDescriptor accepted(::accept4(listening.get(), nullptr, nullptr, 0));
    ASSERT_TRUE(accepted);
    ASSERT_EQ(::send((*result)->get(), "x", 1, 0), 1);
    char got = 0;
    ASSERT_EQ(::recv(accepted.get(), &got, 1, 0), 1);
    EXPECT_EQ(got, 'x');
  }
}

// localhost stands for two addresses, and only the second one answers.
TEST_F(ConnectorTest, TriesOneAddressAfterTheOther) {
  const FileDescriptor listening = Listening("[::1]:0");
  const Connector connector(loop, {.host = "localhost", .port = bound.port}, Keep());
  ASSERT_TRUE(Ends());
  EXPECT_TRUE(result->ok()) << result->status();
}

TEST_F(ConnectorTest, SaysWhyNothingAnswers) {
  Listening("127.0.0.1:0");  // and closes it
  {
    const Connector connector(loop, TargetOf(bound), Keep());
    ASSERT_TRUE(Ends());
    EXPECT_THAT(std::string(result->status().message()), HasSubstr("refused"));
  }
  result.reset();
  const Connector connector(loop, {.unix_path = "/not/there"}, Keep());
  EXPECT_FALSE(result.has_value()) << "never from within the constructor";
  ASSERT_TRUE(Ends());
  EXPECT_THAT(std::string(result->status().message()), HasSubstr("No such file"));
}

TEST_F(ConnectorTest, IsSilentOnceItIsGone) {
  const FileDescriptor listening = Listening("127.0.0.1:0");
  for (const StreamTarget& target :
       {TargetOf(bound), StreamTarget{.unix_path = "/not/there"}, StreamTarget{.host = "a..b"}}) {
    auto connector = std::make_unique<Connector>(loop, target, Keep());
    connector.reset();
  }
  EXPECT_FALSE(loop.RunUntil([&] { return result.has_value(); }, 20ms));
}

TEST_F(ConnectorTest, MayGoInItsOwnAnswer) {
  const FileDescriptor listening = Listening("127.0.0.1:0");
  for (const StreamTarget& target :
       {TargetOf(bound), StreamTarget{.unix_path = "/not/there"}, StreamTarget{.host = "a..b"}}) {
    bool ended = false;
    std::unique_ptr<Connector> connector;
    connector = std::make_unique<Connector>(loop, target, [&](const auto&) {
      connector.reset();
      ended = true;
    });
    EXPECT_TRUE(loop.RunUntil([&] { return ended; }, 10s)) << target.ToString();
  }
}

}  // namespace connector_test
}  // namespace headgate::net
