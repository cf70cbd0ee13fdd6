// Deletions, accidents, restored ensembles and the notes about changes, with real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/zookeeper/source_fixture.h"

namespace headgate::zookeeper_test {
namespace source_deletions_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using watch::zookeeper::SourceOptions;

class SourceDeletionsTest : public SourceFixture {};

TEST_F(SourceDeletionsTest, ADirectoryThatGoesIsAnAccidentUntilItIsConfirmed) {
  Make("/r/config/a", "1");
  Make("/r/config/b", "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 2; }));
  Delete("/r/config/a");
  Delete("/r/config/b");
  Delete("/r/config");
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 2; }));
  EXPECT_THAT(texts_, ElementsAre(Pair("/r/config/a", "1"), Pair("/r/config/b", "1")));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("2 documents were deleted at once")));
  source_->Confirm();
  EXPECT_TRUE(Holds({}));
  EXPECT_EQ(source_->figures().kept, 0u);
  Make("/r/config/c", "3");
  EXPECT_TRUE(Holds({{"/r/config/c", "3"}}));
}

TEST_F(SourceDeletionsTest, WhatIsKeptStaysKeptAfterARestartWithTheCopy) {
  Make("/r/config/a", "1");
  Make("/r/config/b", "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 2; }));
  for (const std::string gone : {"/r/config/a", "/r/config/b", "/r/config"}) Delete(gone);
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 2; }));
  source_.reset();
  // A new instance makes the directory again.
  SourceOptions options = Options();
  options.copy.clear();
  Follow(options);
  ASSERT_TRUE(Until([&] { return awaited_; }));
  source_.reset();
  Follow();
  ASSERT_TRUE(Until([&] { return followed_ == 3; }));
  EXPECT_TRUE(Until([&] { return texts_.size() == 2 && problems_.size() == 1; }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("2 documents were deleted at once")));
  EXPECT_EQ(source_->figures().kept, 2u);
  source_->Confirm();
  EXPECT_TRUE(Holds({}));
  source_.reset();
  Follow();
  ASSERT_TRUE(Until([&] { return followed_ == 4; }));
  EXPECT_EQ(source_->figures().kept, 0u) << "the copy knows that it is confirmed";
}

TEST_F(SourceDeletionsTest, ADirectoryThatWasMadeAnewBeforeARestartIsAnAccident) {
  Make("/r/config/a", "1");
  Make("/r/config/b", "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 2; }));
  source_.reset();
  for (const std::string gone : {"/r/config/a", "/r/config/b", "/r/config"}) Delete(gone);
  Make("/r/config/b", "2");
  Follow();
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 1; }));
  EXPECT_THAT(texts_, ElementsAre(Pair("/r/config/a", "1"), Pair("/r/config/b", "2")));
}

TEST_F(SourceDeletionsTest, AnEnsembleInWhichNothingIsLeftAtAStartIsAnAccident) {
  Make("/r/config/a", "1");
  Make("/r/rules/b", "domain: b");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 2; }));
  source_.reset();
  Delete("/r/config/a");
  Follow();
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 1; }));
  EXPECT_EQ(texts_["/r/config/a"], "1");
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("1 document was deleted and stays in force")));
}

// Takes the ensemble back to where it was before "b" was made.
class RestoredEnsembleTest : public SourceDeletionsTest {
 protected:
  RestoredEnsembleTest() {
    Make("/r/config/a", "1");
    server_.Kill();
    std::filesystem::copy(Data(), backup_ / "data", std::filesystem::copy_options::recursive);
    server_.Start();
    OpenEditor();
    Make("/r/config/b", "2");
    Follow();
    EXPECT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/config/b", "2"}}));
  }
  std::string Data() const { return server_.folder() + "/version-2"; }
  void Restore() {
    server_.Kill();
    std::filesystem::remove_all(Data());
    std::filesystem::copy(backup_ / "data", Data(), std::filesystem::copy_options::recursive);
    server_.Start();
  }
  void ExpectRefusalUntilConfirmed() {
    ASSERT_TRUE(Until([&] { return problems_.size() == 2; }));
    EXPECT_TRUE(source_->awaits_confirmation());
    EXPECT_THAT(problems_,
                Contains(HasSubstr("/r/config: the ensemble answers with older documents")));
    EXPECT_THAT(texts_, ElementsAre(Pair("/r/config/a", "1"), Pair("/r/config/b", "2")));
    EXPECT_GT(source_->figures().age, 0s);
    source_->Confirm();
    EXPECT_TRUE(Holds({{"/r/config/a", "1"}}));
    EXPECT_TRUE(Until([&] { return source_->figures().age == 0s; }));
    EXPECT_THAT(problems_, IsEmpty());
  }
  watch::file::TempDirectory backup_;
};

TEST_F(RestoredEnsembleTest, IsRefusedByARunningInstance) {
  Restore();
  ExpectRefusalUntilConfirmed();
}

TEST_F(RestoredEnsembleTest, IsRefusedByAnInstanceThatStartsWithItsCopy) {
  source_.reset();
  Restore();
  Follow();
  ExpectRefusalUntilConfirmed();
}

class JournalTest : public SourceDeletionsTest {
 protected:
  void Put(const std::string& id, const std::string& document, const std::string& text) {
    std::optional<absl::Status> noted;
    source_->journal()->Put({.id = id, .document = document, .text = text},
                            [&](const absl::Status& status) { noted = status; });
    ASSERT_TRUE(Until([&] { return noted.has_value(); }));
    EXPECT_TRUE(noted->ok()) << *noted;
  }
  std::vector<std::string> IdsOf(std::string_view document, size_t count) {
    std::optional<std::vector<std::string>> ids;
    source_->journal()->Read(document, count, [&](absl::StatusOr<std::vector<rule::Note>> notes) {
      ids.emplace();
      ASSERT_TRUE(notes.ok()) << notes.status();
      for (const rule::Note& note : *notes) ids->push_back(note.id);
    });
    EXPECT_TRUE(Until([&] { return ids.has_value(); }));
    return *ids;
  }
};

TEST_F(JournalTest, OrdersNotesByTheirCreationNotByTheClocksOfTheInstances) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  // The second instance's clock is an hour behind. An outcome replaces its note later.
  Put("3600-a", "/r/config/a", "begun");
  Put("0007-b", "/r/config/a", "begun");
  Put("3601-a", "/r/config/b", "begun");
  Put("0009-b", "/r/config/a", "begun");
  Put("3600-a", "/r/config/a", "done");
  EXPECT_THAT(IdsOf("/r/config/a", 10), ElementsAre("0009-b", "0007-b", "3600-a"));
  EXPECT_THAT(IdsOf("/r/config/a", 1), ElementsAre("0009-b"));
  EXPECT_THAT(IdsOf("", 10), ElementsAre("0009-b", "3601-a", "0007-b", "3600-a"));
}

TEST_F(JournalTest, RemovesTheNotesThatWereMadeFirst) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  // The notes that are written first have the greatest ids.
  for (int i = 0; i < 1'050; ++i) Put(fmt::format("{:05}", 9'999 - i), "/r/config/a", "done");
  ASSERT_TRUE(Until([&] { return IdsOf("", 2'000).size() < 1'021; }));
  const std::vector<std::string> ids = IdsOf("", 2'000);
  EXPECT_EQ(ids.front(), "08950");
  EXPECT_LT(ids.back(), "09980");
}

TEST_F(JournalTest, DeletionsThatAreNotedAreBelieved) {
  for (int i = 0; i < 10; ++i) Make(fmt::format("/r/config/k{}", i), "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 10; }));
  const auto delete_with_note = [&](const std::string& name, std::string_view outcome) {
    const auto read = Read(name);
    ASSERT_TRUE(read.ok());
    bool noted = false;
    source_->journal()->Put(
        {.id = "1-" + name.substr(name.rfind('/') + 1),
         .document = name,
         .text = fmt::format(
             R"({{"id":"1","action":"delete","document":"{}","old_version":"{}","outcome":"{}"}})",
             name, read->version, outcome)},
        [&](const absl::Status& status) { noted = status.ok(); });
    ASSERT_TRUE(Until([&] { return noted; }));
    Delete(name);
  };
  for (int i = 0; i < 6; ++i) delete_with_note(fmt::format("/r/config/k{}", i), "begun");
  ASSERT_TRUE(Until([&] { return texts_.size() == 4; }));
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_EQ(source_->figures().kept, 0u);
  for (int i = 6; i < 10; ++i) delete_with_note(fmt::format("/r/config/k{}", i), "done");
  ASSERT_TRUE(Holds({}));
  EXPECT_EQ(source_->figures().kept, 0u);
  // Now deletions without a note, or with a note about a change that failed or about another state.
  for (int i = 0; i < 12; ++i) Make(fmt::format("/r/config/m{}", i), "1");
  source_.reset();
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 12; }));
  Put("2-m0", "/r/config/m0",
      R"({"id":"2","action":"delete","document":"/r/config/m0","old_version":"1.0"})");
  for (int i = 1; i < 3; ++i) delete_with_note(fmt::format("/r/config/m{}", i), "failed");
  Delete("/r/config/m0");
  for (int i = 3; i < 6; ++i) Delete(fmt::format("/r/config/m{}", i));
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 6; }));
  EXPECT_EQ(texts_.size(), 12u);
}

TEST_F(SourceDeletionsTest, AnEmptiedEnsembleAtTheStartIsAnAccidentToo) {
  for (int i = 0; i < 10; ++i) Make(fmt::format("/r/config/k{}", i), "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 10; }));
  source_.reset();
  for (int i = 0; i < 8; ++i) Delete(fmt::format("/r/config/k{}", i));
  Follow();
  ASSERT_TRUE(Until([&] { return source_->figures().kept == 8; }));
  EXPECT_EQ(texts_.size(), 10u);
}

}  // namespace source_deletions_test
}  // namespace headgate::zookeeper_test
