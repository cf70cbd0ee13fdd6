#include "headgate/rule/read/scalar.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace headgate::rule::read {
namespace scalar_test {

// "int 8", "bool true", "string", …
std::string Resolved(std::string_view yaml) {
  const Document::Parsed parsed = Document::Parse(yaml);
  if (parsed.error) return parsed.error->message;
  const Scalar scalar = Resolve(*parsed.document->root());
  switch (scalar.type) {
    case ScalarType::kString:
      return "string";
    case ScalarType::kNull:
      return "null";
    case ScalarType::kBool:
      return scalar.truth ? "bool true" : "bool false";
    case ScalarType::kInt:
      return fmt::format("int {}", scalar.number);
    case ScalarType::kUnsigned:
      return fmt::format("unsigned {}", scalar.magnitude);
    case ScalarType::kFloat:
      return "float";
    case ScalarType::kMistagged:
      return "mistagged";
  }
  return "";
}

TEST(Scalar, IsWhatYaml11Says) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases{
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"NULL", "null"},
      {"nULL", "string"},
      {"y", "bool true"},
      {"Yes", "bool true"},
      {"TRUE", "bool true"},
      {"on", "bool true"},
      {"yES", "string"},
      {"n", "bool false"},
      {"NO", "bool false"},
      {"False", "bool false"},
      {"off", "bool false"},
      {"oN", "string"},
      {"0", "int 0"},
      {"10", "int 10"},
      {"-10", "int -10"},
      {"+10", "int 10"},
      {"010", "int 8"},
      {"-010", "int -8"},
      {"0x1F", "int 31"},
      {"0X1f", "int 31"},
      {"0b101", "int 5"},
      {"0o17", "int 15"},
      {"1_000", "int 1000"},
      {"1__0_", "int 10"},
      {"08", "float"},
      {"0x", "string"},
      {"0xg", "string"},
      {"0b2", "string"},
      {"+", "string"},
      {"--5", "string"},
      {"_1", "string"},
      {"1a", "string"},
      {"9223372036854775807", "int 9223372036854775807"},
      {"9223372036854775808", "unsigned 9223372036854775808"},
      {"-9223372036854775808", "int -9223372036854775808"},
      {"-9223372036854775809", "float"},
      {"18446744073709551615", "unsigned 18446744073709551615"},
      {"18446744073709551616", "float"},
      {"0.5", "float"},
      {".5", "float"},
      {"5.", "float"},
      {"1e3", "float"},
      {"1.5E-3", "float"},
      {"-.5", "float"},
      {".inf", "float"},
      {"-.INF", "float"},
      {".nan", "float"},
      {".", "string"},
      {"1e", "string"},
      {"1.5.5", "string"},
      {"2026-11-21", "string"},
      {"10:30", "string"},
      {"text", "string"},
      {"'10'", "string"},
      {"\"true\"", "string"},
      {"''", "string"},
      {"|\n  10\n", "string"},
      {"! 10", "string"},
      {"!!str 10", "string"},
      {"!local 10", "string"},
      {"!!int '10'", "int 10"},
      {"!!int ten", "mistagged"},
      {"!!bool 'yes'", "bool true"},
      {"!!bool 1", "mistagged"},
      {"!!float 1", "float"},
      {"!!null ''", "null"},
      {"!!null x", "mistagged"}};
  for (const auto& [yaml, expected] : cases) EXPECT_EQ(Resolved(yaml), expected) << yaml;
}

std::string GoTextOf(std::string_view yaml) {
  return GoText(*Document::Parse(yaml).document->root());
}

TEST(GoText, PrintsValuesAsGoDoes) {
  EXPECT_EQ(GoTextOf("0x10"), "16");
  EXPECT_EQ(GoTextOf("yes"), "true");
  EXPECT_EQ(GoTextOf("off"), "false");
  EXPECT_EQ(GoTextOf("~"), "<nil>");
  EXPECT_EQ(GoTextOf("0.25"), "0.25");
  EXPECT_EQ(GoTextOf("[a, [1, ~]]"), "[a [1 <nil>]]");
  EXPECT_EQ(GoTextOf("{a: 1, b: [c]}"), "map[a:1 b:[c]]");
  EXPECT_LT(GoTextOf(fmt::format("[{}]", fmt::join(std::vector<int>(100'000, 5), ","))).size(),
            100u);
}

TEST(TypeName, IsYamlsShortTag) {
  const auto type = [](std::string_view yaml) {
    return std::string(TypeName(*Document::Parse(yaml).document->root()));
  };
  EXPECT_EQ(type("x"), "!!str");
  EXPECT_EQ(type("5"), "!!int");
  EXPECT_EQ(type("18446744073709551615"), "!!int");
  EXPECT_EQ(type("0.5"), "!!float");
  EXPECT_EQ(type("on"), "!!bool");
  EXPECT_EQ(type("~"), "!!null");
  EXPECT_EQ(type("[]"), "!!seq");
  EXPECT_EQ(type("{}"), "!!map");
}

}  // namespace scalar_test
}  // namespace headgate::rule::read
