#include "headgate/rule/joined_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::rule {
namespace joined_text_test {

// All ways to split a text at a "_" into two pieces.
std::vector<JoinedText> Splits(std::string_view text) {
  std::vector<JoinedText> splits{JoinedText(text)};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') splits.emplace_back(text.substr(0, i), text.substr(i + 1));
  }
  return splits;
}

std::vector<std::string> TextsOver(std::string_view letters, size_t size_max) {
  std::vector<std::string> texts{""};
  for (size_t begin = 0; texts.back().size() < size_max;) {
    const size_t end = texts.size();
    for (; begin < end; ++begin) {
      for (const char c : letters) texts.push_back(texts[begin] + c);
    }
  }
  return texts;
}

TEST(JoinedText, IsOneTextWhereverItsPiecesMeet) {
  const JoinedText early("a", "b_c");
  const JoinedText late("a_b", "c");
  EXPECT_EQ(early.size(), 5u);
  EXPECT_TRUE(early == "a_b_c");
  EXPECT_TRUE(late == "a_b_c");
  EXPECT_EQ(Hash(7, early), Hash(7, late));
  EXPECT_EQ(Hash(7, early), Hash(7, JoinedText("a_b_c")));
}

TEST(JoinedText, EndsWithAnUnderscoreWhereTheValueIsEmpty) {
  EXPECT_TRUE(JoinedText("a", "") == "a_");
  EXPECT_TRUE(JoinedText("a") == "a");
}

TEST(JoinedText, AgreesWithTheJoinedStringInEverything) {
  const std::vector<std::string> texts = TextsOver("_a", 5);
  for (const std::string& text : texts) {
    for (const JoinedText& split : Splits(text)) {
      ASSERT_EQ(split.size(), text.size());
      for (const std::string& other : texts) {
        ASSERT_EQ(split == other, text == other);
        ASSERT_EQ(split.Before(other), text < other) << text << " " << other;
        for (size_t begin = 0; begin <= text.size(); ++begin) {
          ASSERT_EQ(split.HasAt(begin, other), text.substr(begin).starts_with(other));
          for (size_t end = begin; end <= text.size(); ++end) {
            const size_t found = text.substr(0, end).find(other, begin);
            ASSERT_EQ(split.Find(other, begin, end), found)
                << text << " " << other << " " << begin << " " << end;
          }
        }
      }
    }
  }
}

TEST(JoinedText, HashesTextsOfAnyLengthWhole) {
  for (size_t size = 1; size < 300; ++size) {
    std::string text(size, 'x');
    text[size / 3] = '_';
    const std::vector<JoinedText> splits = Splits(text);
    for (const JoinedText& split : splits) ASSERT_EQ(Hash(1, split), Hash(1, splits[0]));
    ASSERT_NE(Hash(1, splits[0]), Hash(2, splits[0]));
    for (size_t i = 0; i < size; ++i) {
      std::string other = text;
      other[i] = 'y';
      ASSERT_NE(Hash(1, JoinedText(other)), Hash(1, splits[0])) << size << " " << i;
    }
    std::string longer = text;
    longer += '\0';
    ASSERT_NE(Hash(1, JoinedText(longer)), Hash(1, splits[0])) << size;
  }
}

}  // namespace joined_text_test
}  // namespace headgate::rule
