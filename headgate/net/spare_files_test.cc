#include "headgate/net/spare_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <vector>

namespace headgate::net {
namespace spare_files_test {

int OpenNull() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

// Takes every descriptor of the process, and releases them again.
class NoFiles {
 public:
  NoFiles() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit few{.rlim_cur = 128, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int fd = OpenNull(); fd >= 0; fd = OpenNull()) taken_.emplace_back(fd);
  }
  ~NoFiles() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> taken_;
};

TEST(SpareFiles, OpensDownToWhatIsKeptForMoreImportantUses) {
  SpareFiles spares;
  const NoFiles none;
  std::vector<FileDescriptor> open;
  const auto open_all = [&](size_t kept) {
    size_t count = 0;
    for (FileDescriptor file = spares.Open(kept, OpenNull); file;
         file = spares.Open(kept, OpenNull)) {
      open.push_back(std::move(file));
      ++count;
    }
    EXPECT_EQ(errno, EMFILE);
    return count;
  };
  EXPECT_EQ(open_all(SpareFiles::kKeptFromRefusals),
            SpareFiles::kCount - SpareFiles::kKeptFromRefusals);
  EXPECT_EQ(open_all(SpareFiles::kKeptFromReservedPlaces),
            SpareFiles::kKeptFromRefusals - SpareFiles::kKeptFromReservedPlaces);
  EXPECT_EQ(open_all(SpareFiles::kKeptFromSnapshots), SpareFiles::kKeptFromReservedPlaces);
  // Closed descriptors become spares again.
  open.clear();
  EXPECT_TRUE(spares.Refill());
  EXPECT_EQ(open_all(0), SpareFiles::kCount);
}

TEST(SpareFiles, OtherErrorsTakeNoSpare) {
  SpareFiles spares;
  const NoFiles none;
  for (size_t i = 0; i < 2 * SpareFiles::kCount; ++i) {
    EXPECT_FALSE(spares.Open(0, [] {
      errno = ECONNABORTED;
      return -1;
    }));
    EXPECT_EQ(errno, ECONNABORTED);
  }
  EXPECT_TRUE(spares.Open(SpareFiles::kCount - 1, OpenNull));
}

}  // namespace spare_files_test
}  // namespace headgate::net
