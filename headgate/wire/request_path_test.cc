#include "headgate/wire/request_path.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/wire/percent.h"

namespace headgate::wire {
namespace request_path_test {

std::string Normalized(std::string_view path) {
  std::string out;
  return NormalizePath(path, out) ? out : "<refused>";
}

TEST(NormalizePath, LeavesAPlainPathAlone) {
  for (const std::string_view path : {"/", "/a", "/a/", "/a/b.c/d", "/a;x=1/b", "/a/..;/b", "/...",
                                      "/.a", "/a..b/", "/\xc3\xa9"}) {
    EXPECT_EQ(Normalized(path), path);
  }
}

TEST(NormalizePath, DecodesOnce) {
  EXPECT_EQ(Normalized("/%61"), "/a");
  EXPECT_EQ(Normalized("/a%7eb%c3%a9"), "/a~b\xc3\xa9");
  EXPECT_EQ(Normalized("/a%252e/b"), "/a%2e/b");
  EXPECT_EQ(Normalized("/a%3fb%23c"), "/a?b#c");
}

TEST(NormalizePath, MergesSlashesAndRemovesDotSegments) {
  for (const auto& [path, expected] : {std::pair<std::string_view, std::string_view>{"//a", "/a"},
                                       {"/a//b", "/a/b"},
                                       {"///", "/"},
                                       {"/a/./b", "/a/b"},
                                       {"/a/../b", "/b"},
                                       {"/a/..", "/"},
                                       {"/a/.", "/a/"},
                                       {"/a/%2e%2e/b", "/b"},
                                       {"/a/%2E/b", "/a/b"},
                                       {"/a/b/../../c", "/c"},
                                       {"/./a", "/a"},
                                       {"/a//", "/a/"},
                                       {"/a/b/..", "/a/"}}) {
    EXPECT_EQ(Normalized(path), expected) << path;
  }
}

TEST(NormalizePath, RefusesWhatReadersResolveDifferently) {
  for (const std::string_view path :
       {"",       "*",      "a/b",         "/../a",        "/%2e%2e/a", "/a/../../b",
        "/a%2fb", "/A%2Fb", "/a%2f..%2fb", "/a%5cb",       "/a\\b",     "/a%00b",
        "/a%0ab", "/a%7f",  "/a\x7f",      "/a\tb",        "/a%zz",     "/a%",
        "/a%2",   "/a#b",   "/a//../b",    "/a//%2e%2e/b", "//../b"}) {
    EXPECT_EQ(Normalized(path), "<refused>") << path;
  }
}

TEST(NormalizePath, TheResultIsNormalized) {
  for (const std::string_view path : {"/a//b/./../c/", "/x/y/z/../..//w", "/%61/%2e/b"}) {
    const std::string once = Normalized(path);
    EXPECT_EQ(Normalized(once), once) << path;
  }
}

TEST(AppendMergedPath, KeepsEscapesAndRemovesWhatReadersResolve) {
  for (const auto& [path, expected] : {std::pair<std::string_view, std::string_view>{"/", "/"},
                                       {"/a%20b;x=1/c%C3%a9", "/a%20b;x=1/c%C3%a9"},
                                       {"//a///b/", "/a/b/"},
                                       {"/a/./b/%2e/c", "/a/b/c"},
                                       {"/a/.%2E/%62", "/%62"},
                                       {"/a/%2e.", "/"},
                                       {"/a/.", "/a/"},
                                       {"/.../.a/%2e%2e%2e", "/.../.a/%2e%2e%2e"},
                                       {"/a/%2ex/%252e%252e", "/a/%2ex/%252e%252e"}}) {
    std::string merged = "prefix";
    AppendMergedPath(path, merged);
    EXPECT_EQ(merged, "prefix" + std::string(expected)) << path;
    EXPECT_EQ(Normalized(expected), Normalized(path)) << path;
  }
}

std::string Decoded(std::string_view path) {
  std::string decoded;
  while (!path.empty()) {
    const int byte = PercentByte(path);
    decoded.push_back(byte < 0 ? path.front() : static_cast<char>(byte));
    path.remove_prefix(byte < 0 ? 1 : 3);
  }
  return decoded;
}

// All paths of up to eight parts.
TEST(AppendMergedPath, DecodedOnceIsTheNormalizedPath) {
  constexpr std::array<std::string_view, 5> kParts = {"/", ".", "%2E", "b", "%61"};
  constexpr size_t kPaths = 5 * 5 * 5 * 5 * 5 * 5 * 5;
  size_t accepted = 0;
  for (size_t number = 0; number < kPaths; ++number) {
    std::string path = "/";
    for (size_t rest = number; rest > 0; rest /= kParts.size())
      path.append(kParts[rest % kParts.size()]);
    std::string normalized;
    if (!NormalizePath(path, normalized)) continue;
    ++accepted;
    std::string merged;
    AppendMergedPath(path, merged);
    ASSERT_EQ(Decoded(merged), normalized) << path;
    std::string again;
    AppendMergedPath(merged, again);
    ASSERT_EQ(again, merged) << path;
  }
  EXPECT_GT(accepted, kPaths / 2);
}

TEST(IsPlainTarget, KnowsWhatServersReadAlike) {
  for (const std::string_view target :
       {"", "*", "/", "/a?b=c&d", "/a%23b?c=%c3%a9", "/~!$&'()*+,;=:@?x\\\"<>^`{|}"})
    EXPECT_TRUE(IsPlainTarget(target)) << target;
  for (const std::string_view target :
       {"/a#b", "/a?key=bad#x", "/a?b=1#&key=bad", "/#?key=bad", "/m\xa0", "/m\x85", "/\xc3\xa9",
        "/a?key=bad\xa0", "/a b", "/a ", "/a?b=\t", "/a\x7f"})
    EXPECT_FALSE(IsPlainTarget(target)) << target;
}

}  // namespace request_path_test
}  // namespace headgate::wire
