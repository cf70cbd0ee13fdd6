// The source tree as text, for the tests of its tidiness.
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
  std::string code;  // the text with comments and the contents of literals blanked; line numbers
                     // stay they are

  // "front/resp" for files in headgate/front/resp; empty elsewhere.
  std::string_view folder() const;
  std::string_view name() const;  // "session.cc"
  std::string_view stem() const;  // "session", for session_test.cc and session_fuzz.cc too
  bool is_header() const { return path.ends_with(".h"); }
  bool is_source() const { return path.ends_with(".cc"); }
  // Whether the file is part of a test, benchmark or fuzzer, according to its name.
  bool is_companion() const;

  struct Include {
    int line;
    std::string path;  // as written between the quotes or brackets
    bool quoted;
  };
  std::vector<Include> Includes() const;
};

std::vector<SourceLine> Lines(std::string_view text);

// The code without comments and without the contents of literals.
std::string CodeOf(std::string_view text);

// Whether `word` occurs in `text` and not as a part of a longer name.
bool HasWord(std::string_view text, std::string_view word);

// Every text file of the project below `root`, sorted by path. Skips build directories and packages
// of others.
std::vector<SourceFile> ReadTree(const std::string& root);

}  // namespace headgate::tidy
