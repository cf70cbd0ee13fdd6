#include "tests/tidy/source_tree.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace headgate::tidy {
namespace {

namespace fs = std::filesystem;

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Blanks literals and comments, character by character.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : in_(text), out_(text) {}

  std::string Run() {
    while (at_ < in_.size()) {
      if (Sees("//")) {
        BlankTo(in_.find('\n', at_));
      } else if (Sees("/*")) {
        BlankTo(EndOf("*/", at_ + 2));
      } else if (in_[at_] == '"' && at_ > 0 && in_[at_ - 1] == 'R') {
        const size_t open = in_.find('(', at_);
        BlankTo(open == in_.npos
                    ? in_.npos
                    : EndOf(")" + std::string(in_.substr(at_ + 1, open - at_ - 1)) + "\"", open));
      } else if (in_[at_] == '"' ||
                 (in_[at_] == '\'' && (at_ == 0 || !IsNameCharacter(in_[at_ - 1])))) {
        BlankTo(EndOfQuoted());
      } else {
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  bool Sees(std::string_view what) const { return in_.substr(at_).starts_with(what); }
  size_t EndOf(std::string_view what, size_t from) const {
    const size_t found = in_.find(what, from);
    return found == in_.npos ? in_.npos : found + what.size();
  }
  size_t EndOfQuoted() const {
    for (size_t i = at_ + 1; i < in_.size(); ++i) {
      if (in_[i] == '\\') {
        ++i;
      } else if (in_[i] == in_[at_] || in_[i] == '\n') {
        return i + 1;
      }
    }
    return in_.npos;
  }
  void BlankTo(size_t end) {
    for (end = std::min(end, in_.size()); at_ < end; ++at_) {
      if (out_[at_] != '\n') out_[at_] = ' ';
    }
  }

  std::string_view in_;
  std::string out_;
  size_t at_ = 0;
};

bool IsSkippedDirectory(std::string_view name) {
  constexpr std::array kSkipped = {"build", "node_modules", ".git", "__pycache__", "corpus"};
  return std::find(kSkipped.begin(), kSkipped.end(), name) != kSkipped.end();
}

}  // namespace

std::string_view SourceFile::folder() const {
  std::string_view rest = path;
  if (!rest.starts_with("headgate/") || rest.rfind('/') == 8) return {};
  rest.remove_prefix(9);
  return rest.substr(0, rest.rfind('/'));
}

std::string_view SourceFile::name() const {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

std::string_view SourceFile::stem() const {
  std::string_view stem = name().substr(0, name().rfind('.'));
  for (const std::string_view suffix : {"_test", "_bench", "_fuzz"}) {
    if (stem.ends_with(suffix)) stem.remove_suffix(suffix.size());
  }
  return stem;
}

bool SourceFile::is_companion() const {
  return path.ends_with("_test.cc") || path.ends_with("_bench.cc") || path.ends_with("_fuzz.cc");
}

std::vector<SourceFile::Include> SourceFile::Includes() const {
  std::vector<Include> includes;
  for (const SourceLine& line : Lines(text)) {
    if (!line.text.starts_with("#include ")) continue;
    const std::string_view target = line.text.substr(9);
    const size_t end = target.find_first_of("\">", 1);
    if (end == target.npos) continue;
    includes.push_back({line.number, std::string(target.substr(1, end - 1)), target[0] == '"'});
  }
  return includes;
}

std::vector<SourceLine> Lines(std::string_view text) {
  std::vector<SourceLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back({number, text.substr(0, end)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string CodeOf(std::string_view text) { return Blanker(text).Run(); }

bool HasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const bool begins = !IsNameCharacter(word.front()) || at == 0 || !IsNameCharacter(text[at - 1]);
    const size_t end = at + word.size();
    const bool ends =
        !IsNameCharacter(word.back()) || end == text.size() || !IsNameCharacter(text[end]);
    if (begins && ends) return true;
  }
  return false;
}

std::vector<SourceFile> ReadTree(const std::string& root) {
  std::vector<SourceFile> files;
  for (fs::recursive_directory_iterator entry(root), end; entry != end; ++entry) {
    if (entry->is_directory()) {
      if (IsSkippedDirectory(entry->path().filename().string())) entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file()) continue;
    std::ifstream in(entry->path(), std::ios::binary);
    SourceFile file{.path = entry->path().lexically_relative(root), .text = {}, .code = {}};
    file.text.assign(std::istreambuf_iterator<char>(in), {});
    if (file.text.find('\0') != file.text.npos) continue;
    if (file.is_header() || file.is_source()) file.code = CodeOf(file.text);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace headgate::tidy
