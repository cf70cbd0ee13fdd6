#include "headgate/net/readable.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "headgate/net/file_descriptor.h"

namespace headgate::net {
namespace readable_test {

using namespace std::chrono_literals;

class ReadableTest : public ::testing::Test {
 protected:
  ReadableTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    out_ = FileDescriptor(ends[0]);
    in_ = FileDescriptor(ends[1]);
  }
  void Write(std::string_view text) {
    ASSERT_EQ(::write(in_.get(), text.data(), text.size()), ssize_t(text.size()));
  }
  void ReadOne() {
    char c = 0;
    ASSERT_EQ(::read(out_.get(), &c, 1), 1);
    heard_ += c;
  }

  base::SystemClock clock_;
  EventLoop loop_{clock_};
  FileDescriptor out_, in_;
  std::string heard_;
};

TEST_F(ReadableTest, CallsAgainUntilAllIsRead) {
  Readable readable(loop_, out_.get(), [this] { ReadOne(); });
  Write("ab");
  EXPECT_TRUE(loop_.RunUntil([this] { return heard_ == "ab"; }, 10s));
  Write("c");
  EXPECT_TRUE(loop_.RunUntil([this] { return heard_ == "abc"; }, 10s));
}

TEST_F(ReadableTest, IsSilentOnceItIsGoneAndLeavesTheDescriptorOpen) {
  auto readable = std::make_unique<Readable>(loop_, out_.get(), [this] { ReadOne(); });
  readable.reset();
  Write("a");
  bool turned = false;
  loop_.Post([&] { turned = true; });
  EXPECT_TRUE(loop_.RunUntil([&] { return turned; }, 10s));
  EXPECT_EQ(heard_, "");
  ReadOne();
  EXPECT_EQ(heard_, "a");
}

TEST_F(ReadableTest, MayGoInItsOwnCall) {
  std::unique_ptr<Readable> readable;
  readable = std::make_unique<Readable>(loop_, out_.get(), [&] {
    ReadOne();
    readable.reset();
  });
  Write("ab");
  EXPECT_TRUE(loop_.RunUntil([this] { return heard_ == "a"; }, 10s));
  EXPECT_EQ(readable, nullptr);
}

}  // namespace readable_test
}  // namespace headgate::net
