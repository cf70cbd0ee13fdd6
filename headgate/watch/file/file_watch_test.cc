#include "headgate/watch/file/file_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "headgate/watch/file/temp_directory.h"

namespace headgate::watch::file {
namespace file_watch_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A watch with a manual clock.
struct Watched {
  explicit Watched(std::vector<std::string> paths, FileWatchOptions options = {})
      : watch(std::move(paths), options) {}

  // The results within `span`, if Step is called whenever wake_at() asks for it.
  std::vector<FilesRead> Run(base::Duration span) {
    std::vector<FilesRead> said;
    const base::BootTime end = now + span;
    for (;;) {
      if (auto read = watch.Step(now)) said.push_back(*std::move(read));
      if (watch.wake_at() > end) break;
      now = std::max(now, watch.wake_at());
    }
    now = end;
    return said;
  }

  // All texts of the single result within a second, joined; otherwise a description of the failure.
  std::string TextWithinASecond() {
    const auto said = Run(1s);
    if (said.size() != 1) return "said " + std::to_string(said.size()) + " times";
    if (!said[0].problems.empty()) return "problem: " + PlaceAndMessage(said[0].problems[0]);
    std::string text;
    for (const FileText& file : said[0].files) text += file.text;
    return text;
  }

  bool readable() {
    pollfd entry{.fd = watch.fd(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) == 1;
  }

  FileWatch watch;
  base::BootTime now = base::BootTime{1'790'000'000'000'000'000};
};

TEST(FileWatch, ReadsAtOnceAndThenOnlyWhatChanges) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  const auto first = watched.watch.Step(watched.now);
  ASSERT_TRUE(first.has_value());
  EXPECT_THAT(first->files, ElementsAre(FileText{temp / "a.yaml", "one"}));
  EXPECT_TRUE(watched.Run(1h).empty());
}

TEST(FileWatch, FollowsAWriteInPlace) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  temp.Write("a.yaml", "two");
  EXPECT_TRUE(watched.readable());
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  EXPECT_FALSE(watched.readable());
}

TEST(FileWatch, ReadsAgainWhatItHadNoDescriptorFor) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  EXPECT_EQ(watched.TextWithinASecond(), "one");
  // The undefined-behaviour sanitizer needs a descriptor when an error is formatted first.
  EXPECT_THAT(Watched({temp / "absent.yaml"}).TextWithinASecond(), ::testing::HasSubstr("absent"));
  temp.Write("a.yaml", "two");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string without = watched.TextWithinASecond();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(without, ::testing::HasSubstr("Too many open files"));
  EXPECT_EQ(watched.TextWithinASecond(), "two") << "the file did not change again";
}

TEST(FileWatch, FollowsAnAtomicRenameEveryTime) {
  TempDirectory temp;
  temp.Write("a.yaml", "0");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  for (const char* text : {"1", "2", "3"}) {
    temp.Replace("a.yaml", text);
    EXPECT_TRUE(watched.readable());
    EXPECT_EQ(watched.TextWithinASecond(), text);
  }
}

TEST(FileWatch, FollowsTheSwapThatKubernetesMakes) {
  TempDirectory temp;
  temp.MakeDirectory("..2026_1");
  temp.Write("..2026_1/rules.yaml", "one");
  temp.Link("..2026_1", "..data");
  temp.Link("..data/rules.yaml", "rules.yaml");
  Watched directory({temp.path()});
  Watched file({temp / "rules.yaml"});
  EXPECT_EQ(directory.TextWithinASecond(), "one");
  EXPECT_EQ(file.TextWithinASecond(), "one");

  temp.MakeDirectory("..2026_2");
  temp.Write("..2026_2/rules.yaml", "two");
  temp.Swap("..2026_2", "..data");
  temp.Remove("..2026_1");
  EXPECT_TRUE(file.readable());
  EXPECT_EQ(directory.TextWithinASecond(), "two");
  EXPECT_EQ(file.TextWithinASecond(), "two");

  temp.MakeDirectory("..2026_3");
  temp.Write("..2026_3/rules.yaml", "three");
  temp.Swap("..2026_3", "..data");
  EXPECT_EQ(directory.TextWithinASecond(), "three");
  EXPECT_EQ(file.TextWithinASecond(), "three");
}

TEST(FileWatch, FollowsALinkIntoAnotherDirectory) {
  TempDirectory temp;
  temp.MakeDirectory("releases/v1");
  temp.Write("releases/v1/rules.yaml", "one");
  temp.Link("v1", "releases/current");
  temp.Link("releases/current/rules.yaml", "rules.yaml");
  Watched watched({temp / "rules.yaml"});
  EXPECT_EQ(watched.TextWithinASecond(), "one");
  temp.Write("releases/v1/rules.yaml", "one, edited");
  EXPECT_TRUE(watched.readable());
  EXPECT_EQ(watched.TextWithinASecond(), "one, edited");
  temp.MakeDirectory("releases/v2");
  temp.Write("releases/v2/rules.yaml", "two");
  temp.Swap("releases/v2", "releases/current2");  // a link with another name: must not be followed
  EXPECT_EQ(watched.TextWithinASecond(), "said 0 times");
  temp.Remove("releases/current");
  temp.Link("v2", "releases/current");
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  temp.Write("releases/v2/rules.yaml", "two, edited");
  EXPECT_TRUE(watched.readable()) << "the new directory is watched";
  EXPECT_EQ(watched.TextWithinASecond(), "two, edited");
}

TEST(FileWatch, FollowsFilesThatComeAndGoInADirectory) {
  TempDirectory temp;
  temp.Write("b.yaml", "b");
  Watched watched({temp.path()});
  EXPECT_EQ(watched.TextWithinASecond(), "b");
  temp.Write("a.yaml", "a");
  EXPECT_EQ(watched.TextWithinASecond(), "ab");
  temp.Rename("a.yaml", "c.yaml");
  EXPECT_EQ(watched.TextWithinASecond(), "ba") << "by name, and it is c.yaml now";
  temp.Remove("b.yaml");
  EXPECT_EQ(watched.TextWithinASecond(), "a");
  temp.Write("c.yaml.swp", "");
  EXPECT_EQ(watched.TextWithinASecond(), "said 0 times");
}

TEST(FileWatch, FollowsADirectoryThatIsReplaced) {
  TempDirectory temp;
  temp.MakeDirectory("rules");
  temp.Write("rules/a.yaml", "one");
  Watched watched({temp / "rules"});
  watched.Run(1s);
  temp.MakeDirectory("next");
  temp.Write("next/a.yaml", "two");
  temp.Rename("rules", "old");
  temp.Rename("next", "rules");
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  temp.Write("rules/a.yaml", "three");
  EXPECT_TRUE(watched.readable()) << "the new directory is watched";
  EXPECT_EQ(watched.TextWithinASecond(), "three");
}

TEST(FileWatch, FollowsAnAncestorThatIsReplaced) {
  TempDirectory temp;
  temp.MakeDirectory("etc/headgate");
  temp.Write("etc/headgate/a.yaml", "one");
  Watched watched({temp / "etc/headgate/a.yaml"});
  watched.Run(1s);
  temp.MakeDirectory("next/headgate");
  temp.Write("next/headgate/a.yaml", "two");
  temp.Rename("etc", "old");
  temp.Rename("next", "etc");
  EXPECT_EQ(watched.TextWithinASecond(), "two") << "no event tells; Look does";
}

TEST(FileWatch, AFileThatAppearsLaterIsRead) {
  TempDirectory temp;
  Watched watched({temp / "rules/a.yaml"});
  EXPECT_THAT(watched.TextWithinASecond(), HasSubstr("problem: "));
  temp.MakeDirectory("rules");
  EXPECT_EQ(watched.TextWithinASecond(), "said 0 times") << "still missing: nothing new";
  temp.Write("rules/a.yaml", "here");
  EXPECT_TRUE(watched.readable());
  EXPECT_EQ(watched.TextWithinASecond(), "here");
}

TEST(FileWatch, AFileThatGoesIsAProblemAndItsReturnIsSaid) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  temp.Remove("a.yaml");
  EXPECT_THAT(watched.TextWithinASecond(), HasSubstr("problem: " + (temp / "a.yaml")));
  temp.Write("a.yaml", "one");
  EXPECT_EQ(watched.TextWithinASecond(), "one");
}

TEST(FileWatch, DeleteAndCreateIsOneChange) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  temp.Remove("a.yaml");
  temp.Write("a.yaml", "two");
  EXPECT_EQ(watched.TextWithinASecond(), "two");
}

TEST(FileWatch, AnUnchangedFileIsNoChange) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  temp.Replace("a.yaml", "one");
  temp.Write("a.yaml", "one");
  EXPECT_TRUE(watched.readable());
  EXPECT_EQ(watched.TextWithinASecond(), "said 0 times");
}

TEST(FileWatch, WaitsUntilABurstIsOver) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  for (int i = 0; i < 10; ++i) {
    temp.Write("a.yaml", "burst " + std::to_string(i));
    EXPECT_TRUE(watched.Run(40ms).empty()) << i;
  }
  const auto said = watched.Run(50ms);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].files[0].text, "burst 9");
}

TEST(FileWatch, FollowsWithinASecondThoughTheBurstGoesOn) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  size_t said = 0;
  for (int i = 0; i < 25; ++i) {  // 1 s in steps of 40 ms
    temp.Write("a.yaml", "burst " + std::to_string(i));
    said += watched.Run(40ms).size();
  }
  EXPECT_GE(said, 1u);
  EXPECT_LE(said, 2u);
}

TEST(FileWatch, DoesNotReadInTheMiddleOfAWrite) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  const int file = ::open((temp / "a.yaml").c_str(), O_WRONLY | O_TRUNC);
  ASSERT_EQ(::write(file, "half", 4), 4);
  EXPECT_TRUE(watched.Run(300ms).empty()) << "quiet, but not closed";
  ASSERT_EQ(::write(file, " whole", 6), 6);
  ::close(file);
  EXPECT_EQ(watched.TextWithinASecond(), "half whole");
}

// A list that was named a moment ago may still be written.
TEST(FileWatch, CanWaitBeforeTheFirstRead) {
  TempDirectory temp;
  temp.Write("list", "192.0.2.1\n");
  Watched watched({temp / "list"}, {.reads_at_once = false});
  EXPECT_TRUE(watched.Run(40ms).empty());
  temp.Write("list", "192.0.2.1\n192.0.2.2\n");
  EXPECT_TRUE(watched.Run(40ms).empty()) << "50 ms after the last change";
  EXPECT_EQ(watched.TextWithinASecond(), "192.0.2.1\n192.0.2.2\n");
}

TEST(FileWatch, AWriterThatNeverClosesIsNotWaitedForForEver) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  const int file = ::open((temp / "a.yaml").c_str(), O_WRONLY | O_TRUNC);
  ASSERT_EQ(::write(file, "two", 3), 3);
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  ::close(file);
}

TEST(FileWatch, WhenAskedItReadsAgainOnceThoughNothingChanged) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  watched.watch.ReadAgain(watched.now);
  EXPECT_TRUE(watched.Run(49ms).empty()) << "quiet for 50 ms first";
  EXPECT_EQ(watched.TextWithinASecond(), "one");
  EXPECT_TRUE(watched.Run(1h).empty());
}

TEST(FileWatch, WhenAskedItDoesNotReadInTheMiddleOfAWrite) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  const int file = ::open((temp / "a.yaml").c_str(), O_WRONLY | O_TRUNC);
  ASSERT_EQ(::write(file, "half", 4), 4);
  watched.watch.ReadAgain(watched.now);
  EXPECT_TRUE(watched.Run(300ms).empty());
  ASSERT_EQ(::write(file, " whole", 6), 6);
  ::close(file);
  EXPECT_EQ(watched.TextWithinASecond(), "half whole");
}

TEST(FileWatch, AskedAgainAndAgainItReadsWithinTheLongestDelay) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  size_t said = 0;
  for (int i = 0; i < 25; ++i) {  // 1 s in steps of 40 ms
    watched.watch.ReadAgain(watched.now);
    said += watched.Run(40ms).size();
  }
  EXPECT_GE(said, 1u);
  EXPECT_LE(said, 2u);
}

TEST(FileWatch, OtherNamesInTheDirectoryOfAFileDoNotMatter) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp / "a.yaml"});
  watched.Run(1s);
  temp.Write("busy.log", "line");
  EXPECT_FALSE(watched.watch.Step(watched.now).has_value());
  EXPECT_GT(watched.watch.wake_at() - watched.now, FileWatchOptions{}.quiet);
}

TEST(FileWatch, WithoutInotifyItLooksTwiceASecondAndSaysSo) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = ::open("/dev/null", O_RDONLY);
  ::close(next);
  const rlimit none_left{static_cast<rlim_t>(next), limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  Watched watched({temp / "a.yaml"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(watched.watch.fd(), -1);
  EXPECT_EQ(watched.watch.failures(), 1u);

  EXPECT_EQ(watched.TextWithinASecond(), "one");
  EXPECT_TRUE(watched.watch.polling());
  temp.Replace("a.yaml", "two");
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  EXPECT_TRUE(watched.Run(10s).empty());
  EXPECT_EQ(watched.watch.failures(), 1u) << "counted once, not at every look";
}

TEST(FileWatch, LostEventsAreCountedAndNothingIsMissed) {
  std::ifstream queue("/proc/sys/fs/inotify/max_queued_events");
  int queue_max = 0;
  if (!(queue >> queue_max) || queue_max > 100'000)
    GTEST_SKIP() << "impossible here: the kernel's queue of events is too long to fill";
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Watched watched({temp.path()});
  watched.Run(1s);
  EXPECT_FALSE(watched.watch.polling());
  for (int i = 0; i <= queue_max / 2; ++i) {
    temp.Rename("a.yaml", "b.yaml");
    temp.Rename("b.yaml", "a.yaml");
  }
  temp.Replace("a.yaml", "two");
  EXPECT_EQ(watched.TextWithinASecond(), "two");
  EXPECT_EQ(watched.watch.failures(), 1u);
}

}  // namespace file_watch_test
}  // namespace headgate::watch::file
