#include "headgate/watch/file/file_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "headgate/files/files.h"
#include "headgate/watch/file/temp_directory.h"

namespace headgate::watch::file {
namespace file_source_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FileSourceTest : public ::testing::Test {
 protected:
  void Follow(std::vector<std::string> paths, base::Duration delay_max = 20ms) {
    source_.emplace(std::move(paths), loop_,
                    FileWatchOptions{.quiet = 1ms, .delay_max = delay_max, .check_interval = 20ms});
    source_->Subscribe([this](const rule::DocumentSet& set) {
      texts_.clear();
      for (const rule::SourceDocument& document : set.documents) texts_ += document.text;
      heard_.push_back(texts_);
      problems_ = set.problems.size();
      awaited_ = set.awaited;
    });
  }
  bool Hears(const std::string& texts) {
    return loop_.RunUntil([&] { return texts_ == texts; }, 10s);
  }
  absl::StatusOr<rule::SourceDocument> Read(std::string_view name) {
    absl::StatusOr<rule::SourceDocument> read;
    source_->Read(
        name, [&](absl::StatusOr<rule::SourceDocument> document) { read = std::move(document); });
    return read;
  }
  absl::StatusOr<std::string> Write(const rule::DocumentChange& change) {
    absl::StatusOr<std::string> written;
    source_->Write(change,
                   [&](absl::StatusOr<std::string> version) { written = std::move(version); });
    return written;
  }

  TempDirectory temp_;
  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  std::optional<FileSource> source_;
  std::string texts_;
  size_t problems_ = 0;
  std::vector<std::string> heard_;  // all texts of each call
  bool awaited_ = false;
};

TEST_F(FileSourceTest, SaysWhatTheFilesHoldAtOnceAndWhenTheyChange) {
  temp_.Write("a.yaml", "one");
  temp_.Write("b.yaml", "two");
  Follow({temp_.path()});
  EXPECT_EQ(texts_, "onetwo");
  temp_.Replace("a.yaml", "ONE");
  EXPECT_TRUE(Hears("ONEtwo"));
}

TEST_F(FileSourceTest, ADirectoryWithoutAFileIsAwaited) {
  Follow({temp_.path()});
  EXPECT_TRUE(awaited_);
  EXPECT_EQ(problems_, 1u);
  temp_.Write("a.yaml", "one");
  EXPECT_TRUE(Hears("one"));
  EXPECT_FALSE(awaited_);
}

TEST_F(FileSourceTest, RefreshReadsAgainEvenIfNothingHasChanged) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()});
  source_->Refresh();
  EXPECT_TRUE(loop_.RunUntil([&] { return heard_.size() == 2; }, 10s));
  EXPECT_THAT(heard_, ElementsAre("one", "one"));
  temp_.Write("a.yaml", "two");
  EXPECT_TRUE(Hears("two"));
  EXPECT_EQ(heard_.size(), 3u) << "a refresh is answered once";
}

TEST_F(FileSourceTest, RefreshDoesNotTakeAFileInTheMiddleOfAWrite) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()}, 1h);
  std::ofstream writer(temp_ / "a.yaml", std::ios::binary | std::ios::trunc);
  writer << "half" << std::flush;
  source_->Refresh();
  EXPECT_FALSE(loop_.RunUntil([&] { return heard_.size() > 1; }, 20ms));
  writer << " whole";
  writer.close();
  EXPECT_TRUE(Hears("half whole"));
  EXPECT_THAT(heard_, ElementsAre("one", "half whole"));
}

TEST_F(FileSourceTest, RefreshGetsTheWatchThatTheSystemRefusedAtFirst) {
  temp_.Write("a.yaml", "one");
  const net::Timer timer(loop_, [] {});  // makes the loop open its own descriptors
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none_left{0, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  Follow({temp_.path()});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(source_->figures().polling);
  EXPECT_EQ(source_->figures().failures, 1u);
  source_->Refresh();
  EXPECT_TRUE(Hears("one"));
  EXPECT_FALSE(source_->figures().polling);
  EXPECT_EQ(source_->figures().failures, 1u);
}

TEST_F(FileSourceTest, CatchesUpWithWhatWasJustWritten) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()});
  bool caught_up = false;
  source_->CatchUp([&] { caught_up = true; });
  EXPECT_TRUE(caught_up) << "nothing has changed";
  EXPECT_EQ(heard_.size(), 1u);
  ASSERT_TRUE(
      Write({.name = temp_ / "b.yaml", .text = "two", .expected_version = ""}).status().ok());
  std::string texts;
  const auto catch_up = [&] {
    texts.clear();
    source_->CatchUp([&] { texts = texts_; });
  };
  catch_up();
  EXPECT_EQ(texts, "onetwo") << "it does not wait for itself";
  // But it waits for others.
  temp_.Write("c.yaml", "three");
  catch_up();
  EXPECT_TRUE(loop_.RunUntil([&] { return !texts.empty(); }, 10s));
  EXPECT_EQ(texts, "onetwothree");
}

TEST_F(FileSourceTest, DoesNotCatchUpWithHalfAFile) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()}, 1h);
  std::ofstream writer(temp_ / "a.yaml", std::ios::binary | std::ios::trunc);
  writer << "half" << std::flush;
  std::string texts;
  source_->CatchUp([&] { texts = texts_; });
  EXPECT_FALSE(loop_.RunUntil([&] { return !texts.empty(); }, 20ms));
  writer << " whole";
  writer.close();
  EXPECT_TRUE(loop_.RunUntil([&] { return !texts.empty(); }, 10s));
  EXPECT_EQ(texts, "half whole");
}

TEST_F(FileSourceTest, ReadsOneDocument) {
  temp_.Write("a.yaml", "one");
  temp_.Write("secret.txt", "hidden");
  Follow({temp_.path()});
  const auto document = Read(temp_ / "a.yaml");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(document->text, "one");
  EXPECT_EQ(Read(temp_ / "b.yaml").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read(temp_ / "secret.txt").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Read("/etc/passwd").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(FileSourceTest, WritesADocumentThatHasTheVersionSeen) {
  temp_.Write("a.yaml", "one");
  ASSERT_EQ(::chmod((temp_ / "a.yaml").c_str(), 0640), 0);
  Follow({temp_.path()});
  const std::string seen = Read(temp_ / "a.yaml")->version;
  const auto written = Write({.name = temp_ / "a.yaml", .text = "two", .expected_version = seen});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, Read(temp_ / "a.yaml")->version);
  EXPECT_TRUE(Hears("two"));
  struct stat info {};
  ASSERT_EQ(::stat((temp_ / "a.yaml").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);

  const auto late = Write({.name = temp_ / "a.yaml", .text = "three", .expected_version = seen});
  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(late.status().message(), HasSubstr(*written));
  EXPECT_EQ(Read(temp_ / "a.yaml")->text, "two");
}

TEST_F(FileSourceTest, AWriteHarmsNoFileBesideTheDocument) {
  temp_.Write("a.yaml", "one");
  temp_.Write("a.yaml.new", "a draft");
  Follow({temp_.path()});
  const std::string seen = Read(temp_ / "a.yaml")->version;
  EXPECT_TRUE(Write({.name = temp_ / "a.yaml", .text = "two", .expected_version = seen}).ok());
  std::string draft;
  std::getline(std::ifstream(temp_ / "a.yaml.new"), draft);
  EXPECT_EQ(draft, "a draft");
}

TEST_F(FileSourceTest, OfTwoInstancesThatWriteOverTheSameVersionOneFails) {
  constexpr int kWrites = 200;
  temp_.Write("a.yaml", "0");
  const std::string path = temp_ / "a.yaml";
  std::atomic<int> accepted{0}, unexpected{0};
  // Each one adds one to the number in the file, over the version that it has just read.
  const auto write = [&] {
    net::EventLoop loop(clock_);
    FileSource source({path}, loop);
    source.Subscribe([](const rule::DocumentSet&) {});
    for (int i = 0; i < kWrites; ++i) {
      source.Read(path, [&](absl::StatusOr<rule::SourceDocument> read) {
        int number = -1;
        if (!read.ok() || !absl::SimpleAtoi(read->text, &number)) {
          ++unexpected;  // such as half a file
          return;
        }
        source.Write(
            {.name = path, .text = std::to_string(number + 1), .expected_version = read->version},
            [&](const absl::StatusOr<std::string>& version) {
              accepted += version.ok() ? 1 : 0;
              unexpected += version.ok() || absl::IsAborted(version.status()) ? 0 : 1;
            });
      });
    }
  };
  std::thread other(write);
  write();
  other.join();
  Follow({path});
  EXPECT_EQ(Read(path)->text, std::to_string(accepted));
  EXPECT_EQ(unexpected, 0);
}

TEST_F(FileSourceTest, WaitsASecondForAnotherInstanceThatHoldsTheLockAndThenFails) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()});
  const std::string seen = Read(temp_ / "a.yaml")->version;
  const auto lock = files::DirectoryLock::OfFile(temp_ / "a.yaml");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto written = Write({.name = temp_ / "a.yaml", .text = "two", .expected_version = seen});
  EXPECT_EQ(written.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(written.status().message(), HasSubstr("another process holds its lock"));
  EXPECT_EQ(Read(temp_ / "a.yaml")->text, "one");
}

TEST_F(FileSourceTest, WritesANewDocumentOnlyIfThereIsNone) {
  temp_.Write("a.yaml", "one");
  Follow({temp_.path()});
  EXPECT_TRUE(Write({.name = temp_ / "b.yaml", .text = "two", .expected_version = ""}).ok());
  EXPECT_TRUE(Hears("onetwo"));
  EXPECT_EQ(
      Write({.name = temp_ / "b.yaml", .text = "three", .expected_version = ""}).status().code(),
      absl::StatusCode::kAborted);
}

TEST_F(FileSourceTest, RemovesADocument) {
  temp_.Write("a.yaml", "one");
  temp_.Write("b.yaml", "two");
  Follow({temp_.path()});
  const std::string seen = Read(temp_ / "b.yaml")->version;
  const auto removed =
      Write({.name = temp_ / "b.yaml", .text = std::nullopt, .expected_version = seen});
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, "");
  EXPECT_TRUE(Hears("one"));
  const auto again =
      Write({.name = temp_ / "b.yaml", .text = std::nullopt, .expected_version = seen});
  EXPECT_EQ(again.status().code(), absl::StatusCode::kAborted);
}

TEST_F(FileSourceTest, WritesNothingBesideTheRuleFiles) {
  temp_.Write("a.yaml", "one");
  temp_.MakeDirectory("below");
  Follow({temp_ / "a.yaml", temp_ / "below"});
  for (const std::string& name :
       {temp_ / "b.yaml", temp_ / "below/x.txt", temp_ / "below/.x.yaml", temp_ / "below/../b.yaml",
        std::string("/etc/passwd"), std::string(), temp_ / "below/a\nb.yaml",
        temp_ / "below/\xff.yaml", temp_ / "below/\x1b[2J.yaml",
        temp_ / ("below/" + std::string(196, 'x') + ".yaml")}) {
    EXPECT_EQ(Write({.name = name, .text = "x", .expected_version = ""}).status().code(),
              absl::StatusCode::kPermissionDenied)
        << name;
  }
  for (const std::string& name : {temp_ / "below/x.yaml", temp_ / "below/ü.yaml",
                                  temp_ / ("below/" + std::string(195, 'x') + ".yaml")}) {
    EXPECT_TRUE(Write({.name = name, .text = "x", .expected_version = ""}).ok()) << name;
  }
}

TEST_F(FileSourceTest, ASymbolicLinkStaysOne) {
  temp_.MakeDirectory("real");
  temp_.Write("real/a.yaml", "one");
  temp_.Link("real/a.yaml", "a.yaml");
  Follow({temp_ / "a.yaml"});
  const std::string seen = Read(temp_ / "a.yaml")->version;
  ASSERT_TRUE(Write({.name = temp_ / "a.yaml", .text = "two", .expected_version = seen}).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(temp_ / "a.yaml"));
  EXPECT_TRUE(Hears("two"));
}

}  // namespace file_source_test
}  // namespace headgate::watch::file
