// The English of a source file: comments, docstrings and paragraphs of Markdown, as words. Names
// and literals in quotes, indented diagrams, headings and fenced code do not belong to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source_tree.h"

namespace headgate::tidy {

struct Word {
  std::string
      text;  // in lower case; "`" for anything in quotes, else a word or one punctuation mark
  int line = 0;
  bool starts_sentence = false;  // with a capital letter
};

// The words of one paragraph, comment or table cell.
using Paragraph = std::vector<Word>;

// Empty for a kind of file whose prose is not known.
std::vector<Paragraph> ProseOf(const SourceFile& file);

// A phrase that has a better replacement.
struct BannedPhrase {
  // Words separated by spaces. `a|b` matches either word, `!a|b` any word but these; `^` matches
  // only at the start of a sentence that is not a question.
  std::string_view pattern;
  std::string_view instead;
  std::string_view unless_after = {};  // words, separated by `|`, after which the phrase is correct
};

// The line of the first word that matches, or 0.
int FindPhrase(const BannedPhrase& phrase, const Paragraph& paragraph);

}  // namespace headgate::tidy
