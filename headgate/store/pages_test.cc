#include "headgate/store/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <vector>

namespace headgate::store {
namespace pages_test {

constexpr uint64_t kBytes = 16u << 20;
constexpr uint64_t kPage = 4096;

uint64_t ResidentPages(void* pages) {
  std::vector<unsigned char> resident(kBytes / kPage);
  EXPECT_EQ(mincore(pages, kBytes, resident.data()), 0);
  return static_cast<uint64_t>(std::count_if(resident.begin(), resident.end(),
                                             [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(Pages, AFirstTouchZeroesOneSmallPageHoweverTheyAreMapped) {
  for (const HugePages huge : {HugePages::kNo, HugePages::kLater}) {
    auto* const pages = static_cast<char*>(MapPages(kBytes, huge));
    EXPECT_EQ(ResidentPages(pages), 0u);
    for (uint64_t at = 0; at < kBytes; at += kBytes / 8) pages[at] = 1;
    EXPECT_EQ(ResidentPages(pages), 8u);
    UnmapPages(pages, kBytes);
  }
}

TEST(Pages, ThatDoNotFitThrowLikeOperatorNew) {
  constexpr uint64_t kMoreThanAnyAddressSpace = uint64_t{1} << 58;
  EXPECT_THROW(MapPages(kMoreThanAnyAddressSpace, HugePages::kNo), std::bad_alloc);
}

TEST(Pages, AnArrayOfThemBeginsWithZeros) {
  const Mapped<uint64_t> numbers(kBytes / sizeof(uint64_t), HugePages::kNo);
  EXPECT_EQ(ResidentPages(numbers), 0u);
  numbers[7] = 1;
  EXPECT_EQ(numbers[7] + numbers[kBytes / sizeof(uint64_t) - 1], 1u);
}

TEST(Pages, KeepWhatTheyHoldWhenTheyAreMerged) {
  auto* const pages = static_cast<char*>(MapPages(kBytes, HugePages::kLater));
  for (uint64_t at = 0; at < kBytes; at += kPage) pages[at] = static_cast<char>(at / kPage);
  MergePages(pages, kBytes);
  for (uint64_t at = 0; at < kBytes; at += kPage)
    ASSERT_EQ(pages[at], static_cast<char>(at / kPage));
  UnmapPages(pages, kBytes);
}

}  // namespace pages_test
}  // namespace headgate::store
