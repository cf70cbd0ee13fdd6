#include "tests/tidy/prose.h"

#include <algorithm>
#include <cctype>

namespace headgate::tidy {
namespace {

// A line of prose without its comment mark.
struct ProseLine {
  int number;
  std::string_view text;
};

// A literal longer than this is an apostrophe or an inch mark.
constexpr size_t kQuotedMax = 200;

bool IsLetter(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalpha(byte) != 0 || byte >= 0x80;
}

bool ContinuesWord(char c) {
  return IsLetter(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '\'' ||
         c == '-';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

Paragraph WordsOf(const std::vector<ProseLine>& lines) {
  std::string text;
  std::vector<int> line_of;
  for (const ProseLine& line : lines) {
    text.append(line.text).push_back(' ');
    line_of.resize(text.size(), line.number);
  }
  Paragraph words;
  bool starts = true;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (c == ' ') {
      at = end;
      continue;
    }
    if (c == '`' || c == '"') {
      const size_t close = text.find(c, end);
      if (close != text.npos && close - at <= kQuotedMax) end = close + 1;
      words.push_back({.text = "`", .line = line_of[at]});
      starts = false;
    } else if (IsLetter(c)) {
      while (ContinuesWord(text[end])) ++end;
      std::string word = text.substr(at, end - at);
      const bool capital = std::isupper(static_cast<unsigned char>(c)) != 0;
      for (char& letter : word)
        letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      words.push_back(
          {.text = std::move(word), .line = line_of[at], .starts_sentence = starts && capital});
      starts = false;
    } else {
      words.push_back({.text = std::string(1, c), .line = line_of[at]});
      const bool ends = c == '.' || c == '!' || c == '?' || c == ':';
      const bool opens = c == '*' || c == '(' || c == '[';
      starts = ends ? text[end] == ' ' || text[end] == '*' : starts && opens;
    }
    at = end;
  }
  return words;
}

// Collects lines into paragraphs.
class Collector {
 public:
  void Add(int number, std::string_view text) { lines_.push_back({number, text}); }
  void End() {
    if (!lines_.empty()) paragraphs_.push_back(WordsOf(lines_));
    lines_.clear();
  }
  void AddAlone(int number, std::string_view text) {
    End();
    Add(number, text);
    End();
  }
  std::vector<Paragraph> Take() {
    End();
    return std::move(paragraphs_);
  }

 private:
  std::vector<ProseLine> lines_;
  std::vector<Paragraph> paragraphs_;
};

// Finds the docstrings of Python; other strings in three quotes are data.
class DocstringReader {
 public:
  // True if the line is a part of a string in three quotes. The text of a docstring goes to
  // `prose`.
  bool Take(const SourceLine& line, Collector& prose) {
    std::string_view text = Trimmed(line.text);
    const size_t indent = line.text.find_first_not_of(' ');
    if (state_ == State::kOutside) {
      const size_t open = text.find(kQuotes);
      if (open == text.npos) return false;
      prose.End();
      state_ = open == 0 ? State::kDocstring : State::kData;
      indent_ = indent;
      text.remove_prefix(open + kQuotes.size());
    } else if (indent > indent_ && text.find(kQuotes) == text.npos) {
      prose.End();  // an example
      return true;
    }
    const size_t end = text.find(kQuotes);
    text = text.substr(0, end);
    if (state_ == State::kDocstring && !text.empty()) {
      prose.Add(line.number, text);
    } else {
      prose.End();
    }
    if (end != text.npos) {
      prose.End();
      state_ = State::kOutside;
    }
    return true;
  }

 private:
  static constexpr std::string_view kQuotes = "\"\"\"";
  enum class State { kOutside, kDocstring, kData };
  State state_ = State::kOutside;
  size_t indent_ = 0;
};

// Comments that begin with `mark`, on lines of their own or behind code.
std::vector<Paragraph> Comments(const SourceFile& file, std::string_view mark) {
  const std::string behind_code = "  " + std::string(mark) + " ";
  const bool docstrings = file.path.ends_with(".py");
  DocstringReader docstring;
  Collector prose;
  for (const SourceLine& line : Lines(file.text)) {
    if (docstrings && docstring.Take(line, prose)) continue;
    std::string_view text = Trimmed(line.text);
    if (text.starts_with(mark)) {
      text.remove_prefix(mark.size());
      const bool blank = text.empty() || text.starts_with("   ");
      blank ? prose.End() : prose.Add(line.number, Trimmed(text));
      continue;
    }
    prose.End();
    const size_t at = line.text.find(behind_code);
    if (at != line.text.npos)
      prose.AddAlone(line.number, line.text.substr(at + behind_code.size()));
  }
  return prose.Take();
}

void AddCells(const SourceLine& line, Collector& prose) {
  std::string_view rest = line.text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    prose.AddAlone(line.number, Trimmed(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::vector<Paragraph> Markdown(const SourceFile& file) {
  bool in_code = false;
  Collector prose;
  for (const SourceLine& line : Lines(file.text)) {
    const std::string_view text = Trimmed(line.text);
    const bool fence = text.starts_with("```");
    if (fence) in_code = !in_code;
    if (fence || in_code || text.empty() || text.starts_with("#")) {
      prose.End();
    } else if (text.starts_with("|")) {
      AddCells(line, prose);
    } else {
      const bool item = text.starts_with("- ") || text.starts_with("* ");
      if (item) prose.End();
      prose.Add(line.number, item ? text.substr(2) : text);
    }
  }
  return prose.Take();
}

bool IsOneOf(std::string_view words, std::string_view word) {
  while (true) {
    const size_t bar = words.find('|');
    if (words.substr(0, bar) == word) return true;
    if (bar == words.npos) return false;
    words.remove_prefix(bar + 1);
  }
}

bool IsQuestion(const Paragraph& words, size_t from) {
  for (size_t i = from; i < words.size(); ++i) {
    if (words[i].text == "?") return true;
    if (words[i].text == "." || words[i].text == "!") return false;
  }
  return false;
}

bool MatchesAt(std::string_view pattern, const Paragraph& words, size_t at) {
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find(' '), pattern.size());
    std::string_view element = pattern.substr(0, end);
    pattern.remove_prefix(std::min(end + 1, pattern.size()));
    if (at == words.size()) return false;
    if (element == "^") {
      if (!words[at].starts_sentence || IsQuestion(words, at)) return false;
      continue;
    }
    const bool negated = element.starts_with('!');
    if (negated) element.remove_prefix(1);
    if (IsOneOf(element, words[at].text) == negated) return false;
    ++at;
  }
  return true;
}

}  // namespace

std::vector<Paragraph> ProseOf(const SourceFile& file) {
  const std::string_view path = file.path;
  if (path.ends_with(".md")) return Markdown(file);
  if (path.ends_with(".cc") || path.ends_with(".h")) return Comments(file, "//");
  for (const std::string_view ending :
       {".py", ".scenario", ".yaml", ".toml", ".cmake", "CMakeLists.txt"}) {
    if (path.ends_with(ending)) return Comments(file, "#");
  }
  return {};
}

int FindPhrase(const BannedPhrase& phrase, const Paragraph& paragraph) {
  for (size_t at = 0; at < paragraph.size(); ++at) {
    if (!MatchesAt(phrase.pattern, paragraph, at)) continue;
    const bool correct = !phrase.unless_after.empty() && at > 0 &&
                         IsOneOf(phrase.unless_after, paragraph[at - 1].text);
    if (!correct) return paragraph[at].line;
  }
  return 0;
}

}  // namespace headgate::tidy
