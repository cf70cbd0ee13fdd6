// Each row of the table of readings (wire/readings.h) against the mappings, and the table against
// its page. tests/integration/test_readings.py tries the rows with the real parsers.
#include "headgate/wire/readings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/percent.h"
#include "headgate/mapping/mapping_rig.h"
#include "tests/source_dir.h"

namespace headgate::mapping {
namespace readings_test {

using wire::Part;
using wire::Reading;

std::string_view AttributeOf(Part part) {
  switch (part) {
    case Part::kPath:
      return "path: true";
    case Part::kQuery:
      return "query: api_key";
    case Part::kCookie:
      return "cookie: session_id";
    case Part::kHeader:
      return "header: X-API-Key";
    case Part::kCredentials:
      return "header: Authorization";
    case Part::kMethod:
      return "method: true";
    case Part::kHost:
      return "host: true";
    case Part::kAddress:
      return "client_address: true";
  }
  return "";
}

// `\x` and two digits stand for a byte.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("\\x") && i + 4 <= text.size()) {
      const std::string escape = "%" + std::string(text.substr(i + 2, 2));
      if (const int byte = base::PercentByte(escape); byte >= 0) {
        out.push_back(static_cast<char>(byte));
        i += 3;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// How a mapping that needs `part` reads what is sent.
std::string ReadHere(Part part, std::string_view sent) {
  DescribedRequest request{.method = "GET", .host = "example.com", .target = "/"};
  const std::vector<std::string> lines = Lines(Unescaped(sent));
  std::vector<HeaderField> fields;
  for (const std::string_view line : lines) {
    const size_t colon = line.find(": ");
    const size_t space = line.find(' ');
    if (space < colon) {
      request.method = line.substr(0, space);
      request.target = line.substr(space + 1);
    } else if (line.starts_with("Host: ")) {
      request.host = line.substr(colon + 2);
    } else {
      // A parser of HTTP has removed the spaces around the value.
      fields.emplace_back(line.substr(0, colon), base::Trimmed(line.substr(colon + 2)));
    }
  }
  request.fields = fields;
  MappingRig rig(
      "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-forwarded\nmappings:\n"
      "- descriptors: [{entries: [{key: k, " +
      std::string(AttributeOf(part)) + "}]}]\n");
  const std::string read = rig.Map(request);
  EXPECT_TRUE(!read.starts_with("invalid") || !rig.mapper.Map(request, 0).why.empty()) << sent;
  return read.starts_with("k=") ? read.substr(2) : read.substr(0, read.find(' '));
}

TEST(Readings, AreReadHereAsTheTableSays) {
  for (const Reading& reading : wire::Readings())
    EXPECT_EQ(ReadHere(reading.part, reading.sent), Unescaped(reading.here)) << reading.sent;
}

// A spelling that is read otherwise elsewhere is invalid, or read alike: never another value.
TEST(Readings, DoNotGiveAClientAnotherKey) {
  for (const Reading& reading : wire::Readings()) {
    for (const Reading& other : wire::Readings()) {
      if (other.part != reading.part || other.sent != reading.sent) continue;
      EXPECT_EQ(other.here, reading.here) << reading.sent;
    }
  }
}

std::string Cell(std::string_view text) {
  std::string cell;
  for (const std::string& line : Lines(text)) cell += (cell.empty() ? "`" : "<br>`") + line + "`";
  return cell;
}

std::string Row(const Reading& reading) {
  const std::string as = reading.as == "-" ? "nothing" : Cell(reading.as);
  const std::string here = reading.here == "invalid" ? "invalid" : Cell(reading.here);
  return "| " + std::string(Name(reading.part)) + " | " + Cell(reading.sent) + " | " +
         std::string(reading.reader == "-" ? "none" : reading.reader) + " | " + as + " | " + here +
         " |\n";
}

// On a difference, the test prints the expected lines.
TEST(Readings, AreShownInTheReference) {
  std::string expected;
  std::vector<std::string> beginnings;
  for (const Reading& reading : wire::Readings()) {
    expected += Row(reading);
    beginnings.push_back("| " + std::string(Name(reading.part)) + " | `");
  }
  std::ifstream file(SourceDir() / "docs/reference/mappings.md");
  ASSERT_TRUE(file) << "docs/reference/mappings.md is missing";
  std::string found;
  for (std::string line; std::getline(file, line);) {
    if (std::any_of(beginnings.begin(), beginnings.end(),
                    [&](const std::string& beginning) { return line.starts_with(beginning); })) {
      found += line + "\n";
    }
  }
  EXPECT_EQ(found, expected) << "make the rows of the table in docs/reference/mappings.md these:\n"
                             << expected;
}

}  // namespace readings_test
}  // namespace headgate::mapping
