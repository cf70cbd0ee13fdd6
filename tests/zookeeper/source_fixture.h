// For tests: a source of rules with a real server, and an editor of its nodes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/watch/file/temp_directory.h"
#include "headgate/watch/zookeeper/zookeeper_source.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {

using namespace std::chrono_literals;

class SourceFixture : public ::testing::Test {
 protected:
  using Texts = std::map<std::string, std::string>;  // by document

  SourceFixture() { OpenEditor(); }

  watch::zookeeper::SourceOptions Options(std::string_view login = "") const {
    return {.place = *client::zookeeper::ParsePlace(
                fmt::format("zk://{}{}/r", login, server_.server()), "/"),
            .session_timeout = 400ms,
            .copy = temp_ / "copy"};
  }
  void Follow() { Follow(Options()); }
  void Follow(watch::zookeeper::SourceOptions options) {
    source_.emplace(std::move(options), loop_);
    source_->Tell([this](const rule::Source::News& news) {
      using Kind = rule::Source::News::Kind;
      if (news.kind == Kind::kChangesMissed) missed_.push_back(news.reason);
      lost_ += news.kind == Kind::kLost ? 1u : 0u;
      followed_ += news.kind == Kind::kFollowed ? 1u : 0u;
    });
    source_->Subscribe([this](const rule::DocumentSet& set) {
      ++published_;
      texts_.clear();
      for (const rule::SourceDocument& document : set.documents)
        texts_[document.name] = document.text;
      problems_.clear();
      for (const rule::Problem& problem : set.problems)
        problems_.push_back(rule::PlaceAndMessage(problem));
      awaited_ = set.awaited;
      last_ = set;
    });
  }
  bool Until(const std::function<bool()>& done, base::Duration timeout = 20s) {
    return loop_.RunUntil(done, timeout);
  }
  bool Holds(const Texts& texts) {
    return Until([&] { return texts_ == texts; });
  }
  void OpenEditor() {
    editor_.emplace(client::zookeeper::ClientOptions{.servers = Options().place.servers}, loop_,
                    client::zookeeper::Client::Listener{});
    ASSERT_TRUE(Until([&] { return editor_->connected(); }));
  }
  void Make(const std::string& path, std::string_view text) {
    bool made = false;
    editor_->CreateAll(path.substr(0, path.rfind('/')), [&](const absl::Status& parent) {
      ASSERT_TRUE(parent.ok()) << parent;
      editor_->Create(path, text, client::zookeeper::CreateMode::kPersistent,
                      [&](const absl::StatusOr<client::zookeeper::Created>& created) {
                        EXPECT_TRUE(created.ok()) << created.status();
                        made = true;
                      });
    });
    ASSERT_TRUE(Until([&] { return made; }));
  }
  void Set(const std::string& path, std::string_view text) {
    bool set = false;
    editor_->Set(path, text, -1, [&](const absl::StatusOr<client::zookeeper::NodeStat>& stat) {
      EXPECT_TRUE(stat.ok()) << stat.status();
      set = true;
    });
    ASSERT_TRUE(Until([&] { return set; }));
  }
  void Replace(const std::string& path, std::string_view text) {
    bool replaced = false;
    editor_->Replace(path, text, -1, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      replaced = true;
    });
    ASSERT_TRUE(Until([&] { return replaced; }));
  }
  void Delete(const std::string& path) {
    bool deleted = false;
    editor_->Delete(path, -1, [&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      deleted = true;
    });
    ASSERT_TRUE(Until([&] { return deleted; }));
  }
  std::vector<std::string> Instances() {
    std::optional<std::vector<std::string>> names;
    editor_->List("/r/instances", client::zookeeper::Watch::kNo,
                  [&](const absl::StatusOr<client::zookeeper::Children>& children) {
                    names = children.ok() ? children->names : std::vector<std::string>();
                  });
    EXPECT_TRUE(Until([&] { return names.has_value(); }));
    return *names;
  }
  std::string DataOf(const std::string& path) {
    std::optional<std::string> data;
    editor_->Get(path, client::zookeeper::Watch::kNo,
                 [&](const absl::StatusOr<client::zookeeper::Node>& node) {
                   data = node.ok() ? node->data : "";
                 });
    EXPECT_TRUE(Until([&] { return data.has_value(); }));
    return *data;
  }
  watch::zookeeper::SourceOptions OptionsOf(const std::string& instance) const {
    watch::zookeeper::SourceOptions options = Options();
    options.copy.clear();
    options.instance = instance;
    options.info.version = "1.2";
    return options;
  }
  absl::StatusOr<std::string> Write(const rule::DocumentChange& change) {
    std::optional<absl::StatusOr<std::string>> written;
    source_->Write(change, [&](absl::StatusOr<std::string> given) { written = std::move(given); });
    EXPECT_TRUE(Until([&] { return written.has_value(); }));
    return *written;
  }
  absl::StatusOr<rule::SourceDocument> Read(std::string_view name) {
    std::optional<absl::StatusOr<rule::SourceDocument>> read;
    source_->Read(name,
                  [&](absl::StatusOr<rule::SourceDocument> given) { read = std::move(given); });
    EXPECT_TRUE(Until([&] { return read.has_value(); }));
    return *read;
  }

  watch::file::TempDirectory temp_;
  ZooKeeperProcess server_;
  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  std::optional<client::zookeeper::Client> editor_;
  std::optional<watch::zookeeper::ZooKeeperSource> source_;
  uint64_t published_ = 0;
  Texts texts_;
  std::vector<std::string> problems_;
  std::vector<std::string> missed_;
  uint32_t lost_ = 0;
  uint32_t followed_ = 0;
  bool awaited_ = false;
  rule::DocumentSet last_;
};

}  // namespace headgate::zookeeper_test
