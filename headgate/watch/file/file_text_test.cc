#include "headgate/watch/file/file_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "headgate/watch/file/temp_directory.h"

namespace headgate::watch::file {
namespace file_text_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Names(const FilesRead& read) {
  std::vector<std::string> names;
  for (const FileText& file : read.files)
    names.push_back(file.path.substr(file.path.rfind('/') + 1));
  return names;
}

FilesRead Read(std::initializer_list<std::string> paths) {
  return ReadFiles(std::vector<std::string>(paths));
}

std::vector<std::string> Texts(const FilesRead& read) {
  std::vector<std::string> texts;
  for (const rule::Problem& problem : read.problems) {
    EXPECT_NE(problem.hint, "") << problem.message;
    texts.push_back(PlaceAndMessage(problem));
  }
  return texts;
}

TEST(ReadFiles, ADirectoryIsItsRuleFilesByName) {
  TempDirectory temp;
  for (const char* name :
       {"b.yaml", "a.yml", "c.YAML", ".hidden.yaml", "notes.txt", "d.yaml~", "10.yaml"}) {
    temp.Write(name, name);
  }
  temp.MakeDirectory("sub.yaml");
  temp.Write("sub.yaml/inner.yaml", "");
  const FilesRead read = Read({temp.path()});
  EXPECT_THAT(Names(read), ElementsAre("10.yaml", "a.yml", "b.yaml"));
  EXPECT_EQ(read.files[2].text, "b.yaml");
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_FALSE(read.torn);
}

TEST(ReadFiles, PathsKeepTheirOrderAndAFileMayHaveAnyName) {
  TempDirectory temp;
  temp.Write("z.conf", "1");
  temp.Write("a.yaml", "2");
  EXPECT_THAT(Names(Read({temp / "z.conf", temp / "a.yaml"})), ElementsAre("z.conf", "a.yaml"));
}

TEST(ReadFiles, AFileThatIsNamedTwiceIsReadOnce) {
  TempDirectory temp;
  temp.MakeDirectory("rules");
  temp.MakeDirectory("empty");
  temp.Write("rules/a.yaml", "a");
  temp.Write("rules/b.yaml", "b");
  temp.Link("rules", "current");
  const std::string a = temp / "rules/a.yaml";
  EXPECT_THAT(Names(Read({a, a})), ElementsAre("a.yaml"));
  EXPECT_THAT(Names(Read({a, temp / "rules/./a.yaml", temp / "current/a.yaml"})),
              ElementsAre("a.yaml"));
  EXPECT_THAT(Names(Read({temp / "rules", temp / "rules/"})), ElementsAre("a.yaml", "b.yaml"));
  EXPECT_THAT(Names(Read({temp / "rules/b.yaml", temp / "rules"})), ElementsAre("b.yaml", "a.yaml"))
      << "the first counts";
  EXPECT_THAT(Read({temp / "empty", temp / "empty"}).problems, ::testing::SizeIs(1));
  EXPECT_EQ(StampFiles(std::vector<std::string>{a, a}).size(), 1u);
}

TEST(ReadFiles, FilesOfOneNameInTwoDirectoriesAreTwo) {
  TempDirectory temp;
  temp.MakeDirectory("x");
  temp.MakeDirectory("y");
  temp.Write("x/a.yaml", "1");
  temp.Write("y/a.yaml", "2");
  EXPECT_THAT(Names(Read({temp / "x/a.yaml", temp / "y/a.yaml"})), ElementsAre("a.yaml", "a.yaml"));
  EXPECT_THAT(Names(Read({temp / "x", temp / "y"})), ElementsAre("a.yaml", "a.yaml"));
}

TEST(ReadFiles, TextIsTakenByteForByte) {
  TempDirectory temp;
  const std::string text("a\0b\r\n\xff", 6);
  temp.Write("a.yaml", text);
  EXPECT_EQ(Read({temp / "a.yaml"}).files[0].text, text);
  const std::string large(1'000'000, 'x');
  temp.Write("a.yaml", large);
  EXPECT_EQ(Read({temp / "a.yaml"}).files[0].text, large);
  temp.Write("a.yaml", "");
  EXPECT_EQ(Read({temp / "a.yaml"}).files[0].text, "");
}

TEST(ReadFiles, AMissingFileIsAProblemAndThenNothingIsRead) {
  TempDirectory temp;
  temp.Write("a.yaml", "1");
  temp.MakeDirectory("empty");
  temp.Link("nowhere", "link.yaml");
  const FilesRead read =
      Read({temp / "a.yaml", temp / "gone.yaml", temp / "empty", temp / "link.yaml"});
  EXPECT_THAT(read.files, IsEmpty());
  EXPECT_THAT(Texts(read),
              ElementsAre(HasSubstr("/empty: no file *.yaml or *.yml in this directory")))
      << "files are only opened when all are known";
  const FilesRead missing = Read({temp / "a.yaml", temp / "gone.yaml", temp / "link.yaml"});
  EXPECT_THAT(missing.files, IsEmpty());
  EXPECT_THAT(Texts(missing),
              ElementsAre(HasSubstr("/gone.yaml: cannot be read: No such file or directory"),
                          HasSubstr("/link.yaml: cannot be read: No such file or directory")));
}

TEST(ReadFiles, APipeOrDeviceIsRefusedAtOnce) {
  TempDirectory temp;
  ASSERT_EQ(::mkfifo((temp / "pipe.yaml").c_str(), 0600), 0);
  EXPECT_THAT(Texts(Read({temp / "pipe.yaml"})),
              ElementsAre(HasSubstr("neither a file nor a directory")));
  EXPECT_THAT(Texts(Read({"/dev/zero"})),
              ElementsAre("/dev/zero: cannot be read: neither a file nor a directory"));
}

TEST(ReadFiles, BoundsSizeAndNumber) {
  TempDirectory temp;
  temp.Write("large.yaml", "");
  std::filesystem::resize_file(temp / "large.yaml", kFileBytesMax + 1);
  EXPECT_THAT(Texts(Read({temp / "large.yaml"})), ElementsAre(HasSubstr("larger than 64 MiB")));
  temp.Remove("large.yaml");
  for (size_t i = 0; i <= kFilesMax; ++i) temp.Write(std::to_string(i) + ".yaml", "");
  EXPECT_THAT(Texts(Read({temp.path()})), ElementsAre(HasSubstr("more than 1000 rule files")));
  temp.Remove("0.yaml");
  EXPECT_EQ(Read({temp.path()}).files.size(), kFilesMax);
}

TEST(StampFiles, ChangeWhenAFileDoes) {
  TempDirectory temp;
  temp.Write("a.yaml", "1");
  const std::vector<std::string> paths = {temp.path()};
  const auto before = StampFiles(paths);
  EXPECT_EQ(StampFiles(paths), before);
  temp.Write("a.yaml", "12");
  const auto longer = StampFiles(paths);
  EXPECT_NE(longer, before);
  temp.Replace("a.yaml", "12");
  EXPECT_NE(StampFiles(paths), longer);
  temp.Remove("a.yaml");
  EXPECT_NE(StampFiles(paths), longer);
}

TEST(NamesToWatch, AFileIsANameInItsDirectory) {
  TempDirectory temp;
  temp.Write("a.yaml", "");
  EXPECT_THAT(NamesToWatch(std::vector{temp / "a.yaml"}),
              UnorderedElementsAre(WatchedName{temp.path(), "a.yaml"}));
  EXPECT_THAT(NamesToWatch(std::vector{temp.path()}),
              UnorderedElementsAre(WatchedName{temp.path(), ""}));
}

TEST(NamesToWatch, AMissingFileIsWatchedThroughTheNearestDirectory) {
  TempDirectory temp;
  EXPECT_THAT(NamesToWatch(std::vector{temp / "rules/edge/a.yaml"}),
              UnorderedElementsAre(WatchedName{temp.path(), "rules"}));
}

TEST(NamesToWatch, EverySymbolicLinkOnTheWayCounts) {
  TempDirectory temp;
  temp.MakeDirectory("v1");
  temp.Write("v1/rules.yaml", "");
  temp.Link("v1", "current");
  temp.MakeDirectory("etc");
  temp.Link("../current/rules.yaml", "etc/rules.yaml");
  EXPECT_THAT(NamesToWatch(std::vector{temp / "etc/rules.yaml"}),
              UnorderedElementsAre(WatchedName{temp / "etc", "rules.yaml"},
                                   WatchedName{temp.path(), "current"},
                                   WatchedName{temp / "v1", "rules.yaml"}));
  EXPECT_THAT(NamesToWatch(std::vector{temp / "etc"}),
              UnorderedElementsAre(
                  WatchedName{temp / "etc", ""}, WatchedName{temp / "etc", "rules.yaml"},
                  WatchedName{temp.path(), "current"}, WatchedName{temp / "v1", "rules.yaml"}));
}

TEST(NamesToWatch, ALoopOfLinksEnds) {
  TempDirectory temp;
  temp.Link("b", "a");
  temp.Link("a", "b");
  EXPECT_EQ(NamesToWatch(std::vector{temp / "a"}).size(), 2u);
}

}  // namespace file_text_test
}  // namespace headgate::watch::file
