// The source tree as text, for the test that holds it tidy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headgate::tidy {

struct SourceLine {
  int number = 0;         // from 1
  std::string_view text;  // without its end
};

struct SourceFile {
  std::string path;  // relative: "headgate/front/resp/session.cc"
  std::string text;
  std::string code;  // the text with comments and the insides of literals blanked; lines stay where
                     // they are

  // "front/resp" for what is in headgate/front/resp; empty elsewhere.
  std::string_view folder() const;
  std::string_view name() const;  // "session.cc"
  std::string_view stem() const;  // "session", for session_test.cc and session_fuzz.cc too
  bool is_header() const { return path.ends_with(".h"); }
  bool is_source() const { return path.ends_with(".cc"); }
  // Part of a test, benchmark or fuzzer, to judge by its name.
  bool is_companion() const;

  struct Include {
    int line;
    std::string path;  // as written between the quotes or brackets
    bool quoted;
  };
  std::vector<Include> Includes() const;
};

std::vector<SourceLine> Lines(std::string_view text);

// What a compiler sees: C++ with its comments blanked, and whatever is between quotes.
std::string CodeOf(std::string_view text);

// Whether `word` occurs in `text` as it is written and not as a part of a longer name.
bool HasWord(std::string_view text, std::string_view word);

// Every text file of the project below `root` (no build directories, no packages of others), by
// path.
std::vector<SourceFile> ReadTree(const std::string& root);

}  // namespace headgate::tidy
