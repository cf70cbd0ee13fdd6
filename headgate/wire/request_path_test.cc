#include "headgate/wire/request_path.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/percent.h"

namespace headgate::wire {
namespace request_path_test {

std::string Normalized(std::string_view path, PathOptions options = {}) {
  std::string out;
  return NormalizePath(path, out, options) ? out : "<refused>";
}

TEST(NormalizePath, LeavesAPlainPathAlone) {
  for (const std::string_view path :
       {"/", "/a", "/a/", "/a/b.c/d", "/...", "/.a", "/a..b/", "/\xc3\xa9"}) {
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
  for (const auto& [path, expected] :
       {std::pair<std::string_view, std::string_view>{"/a//b", "/a/b"},
        {"/a/./b", "/a/b"},
        {"/a/../b", "/b"},
        {"/a/..", "/"},
        {"/a/.", "/a/"},
        {"/a/%2e%2e/b", "/b"},
        {"/a//b/../c", "/a/c"},
        {"/a//b/c/../../d", "/a/d"},
        {"/a/%2E/b", "/a/b"},
        {"/a/b/../../c", "/c"},
        {"/./a", "/a"},
        {"/a//", "/a/"},
        {"/a/b/..", "/a/"}}) {
    EXPECT_EQ(Normalized(path), expected) << path;
  }
}

TEST(NormalizePath, RefusesWhatReadersResolveDifferently) {
  for (const std::string_view path : {"",
                                      "*",
                                      "a/b",
                                      "/../a",
                                      "/%2e%2e/a",
                                      "/a/../../b",
                                      "/a%2fb",
                                      "/A%2Fb",
                                      "/a%2f..%2fb",
                                      "/a%5cb",
                                      "/a\\b",
                                      "/a%00b",
                                      "/a%0ab",
                                      "/a%7f",
                                      "/a\x7f",
                                      "/a\tb",
                                      "/a%zz",
                                      "/a%",
                                      "/a%2",
                                      "/a#b",
                                      "/a//../b",
                                      "/a//%2e%2e/b",
                                      "//../b",
                                      "/a//./../b",
                                      "/a//b/../../c"}) {
    EXPECT_EQ(Normalized(path), "<refused>") << path;
  }
}

// What follows is a host for readers of URLs.
TEST(NormalizePath, RefusesAnEmptyFirstSegment) {
  for (const std::string_view path :
       {"//", "///", "//a", "//a@b/c", "///a/b", "/.//a", "/%2e//a", "/a/..//b", "/a/%2e%2e//b/c"})
    EXPECT_EQ(Normalized(path), "<refused>") << path;
  EXPECT_EQ(Normalized("/a///b"), "/a/b");
  EXPECT_EQ(Normalized("/a/.."), "/");
}

TEST(NormalizePath, RefusesEscapesThatAreNotUtf8) {
  for (const std::string_view path : {"/%ff", "/%c0%ae", "/%c3", "/a%c3/%a9", "/%ed%a0%80"})
    EXPECT_EQ(Normalized(path), "<refused>") << path;
  EXPECT_EQ(Normalized("/%f0%9f%98%80"), "/\xf0\x9f\x98\x80");
}

TEST(NormalizePath, RefusesASegmentWithASession) {
  for (const std::string_view path : {"/(S(abc))/login", "/a/(f(1))", "/%28A(x)F(y))/b"})
    EXPECT_EQ(Normalized(path), "<refused>") << path;
  for (const std::string_view path : {"/Products(1)", "/(a)", "/a(S(b))", "/((a))", "/f(x(1))"})
    EXPECT_EQ(Normalized(path), path);
}

TEST(NormalizePath, RefusesParametersUnlessTheyHaveAMeaning) {
  for (const std::string_view path :
       {"/a;x=1/b", "/a;", "/;/a", "/a/;", "/a%3bx", "/a%3B", "/a/..;/b"})
    EXPECT_EQ(Normalized(path), "<refused>") << path;
}

TEST(NormalizePath, StripsParameters) {
  constexpr PathOptions kStrip = {.parameters = PathParameters::kStrip};
  for (const auto& [path, expected] :
       {std::pair<std::string_view, std::string_view>{"/a;x=1/b", "/a/b"},
        {"/a;x=1;y=2,3/b;z", "/a/b"},
        {"/a;", "/a"},
        {"/a;x=%41", "/a"},
        {"/a;x/../b", "/b"},
        {"/a.;x", "/a."},
        {"/...;x", "/..."}}) {
    EXPECT_EQ(Normalized(path, kStrip), expected) << path;
  }
  for (const std::string_view path :
       {"/;/a", "/a/;/b", "/a/;", "/a/..;/b", "/a/.;x/b", "/a/%2e%2e;/b", "/a/%2e;", "/a%3bx",
        "/a;x=%2fb", "/a;x=%00", "/a;x=%3b"})
    EXPECT_EQ(Normalized(path, kStrip), "<refused>") << path;
}

TEST(NormalizePath, KeepsParameters) {
  constexpr PathOptions kKeep = {.parameters = PathParameters::kKeep};
  for (const auto& [path, expected] :
       {std::pair<std::string_view, std::string_view>{"/a;x=1/b", "/a;x=1/b"},
        {"/a%3bx", "/a;x"},
        {"/;/a", "/;/a"},
        {"/a/...;/b", "/a/...;/b"}}) {
    EXPECT_EQ(Normalized(path, kKeep), expected) << path;
  }
  for (const std::string_view path :
       {"/a/..;/b", "/a/.;x/b", "/a/%2e%2e;/b", "/a/..%3b/b", "/a/%2e%3bx", "/..;x"})
    EXPECT_EQ(Normalized(path, kKeep), "<refused>") << path;
}

TEST(NormalizePath, CanKeepDotSegments) {
  constexpr PathOptions kUnresolved = {.resolves_dots = false};
  for (const auto& [path, expected] :
       {std::pair<std::string_view, std::string_view>{"/a/../b", "/a/../b"},
        {"/a/%2e/b//c", "/a/./b/c"},
        {"/a/%2e%2E", "/a/.."},
        {"/a/b", "/a/b"}}) {
    EXPECT_EQ(Normalized(path, kUnresolved), expected) << path;
  }
}

TEST(HasDotSegments, FindsThemInAnySpelling) {
  for (const std::string_view path : {"/.", "/..", "/a/./b", "/a/%2e%2E/b", "/a/.%2e", "/a/%2e"})
    EXPECT_TRUE(HasDotSegments(path)) << path;
  for (const std::string_view path :
       {"/", "/a", "/a/", "/.a/b.", "/...", "/a/%2e%2e%2e", "/a/%252e"})
    EXPECT_FALSE(HasDotSegments(path)) << path;
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
                                       {"/a///b/", "/a/b/"},
                                       {"/a/./b/%2e/c", "/a/b/c"},
                                       {"/a/.%2E/%62", "/%62"},
                                       {"/a/%2e.", "/"},
                                       {"/a/.", "/a/"},
                                       {"/.../.a/%2e%2e%2e", "/.../.a/%2e%2e%2e"},
                                       {"/a/%2ex/%252e%252e", "/a/%2ex/%252e%252e"}}) {
    std::string merged = "prefix";
    AppendMergedPath(path, merged);
    EXPECT_EQ(merged, "prefix" + std::string(expected)) << path;
    constexpr PathOptions kKeep = {.parameters = PathParameters::kKeep};
    EXPECT_EQ(Normalized(expected, kKeep), Normalized(path, kKeep)) << path;
  }
}

std::string Decoded(std::string_view path) {
  std::string decoded;
  while (!path.empty()) {
    const int byte = base::PercentByte(path);
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
