#include "headgate/rule/read/metadata.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::read {
namespace {

class JsonWriter {
 public:
  absl::Status Write(const DocumentNode& node) {
    if (out_.size() > kMetadataBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} bytes as JSON", kMetadataBytesMax));
    }
    switch (node.kind) {
      case NodeKind::kScalar:
        return WriteScalar(node);
      case NodeKind::kSequence:
        return WriteSequence(node);
      case NodeKind::kMapping:
        return WriteMapping(node);
    }
    return absl::OkStatus();
  }

  std::string Take() && { return std::move(out_); }

 private:
  absl::Status WriteSequence(const DocumentNode& node) {
    out_ += '[';
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) out_ += ',';
      HEADGATE_RETURN_IF_ERROR(Write(*node.children[i]));
    }
    out_ += ']';
    return absl::OkStatus();
  }

  absl::Status WriteMapping(const DocumentNode& node) {
    std::vector<std::pair<std::string, const DocumentNode*>> members;
    absl::flat_hash_map<std::string, size_t> places;
    for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const DocumentNode& key = *node.children[i];
      if (key.kind != NodeKind::kScalar)
        return absl::InvalidArgumentError("a key is a list or a mapping");
      std::string name =
          Resolve(key).type == ScalarType::kInt ? GoText(key) : std::string(key.text);
      const auto [place, added] = places.emplace(name, members.size());
      if (added) {
        members.emplace_back(std::move(name), node.children[i + 1]);
      } else {
        members[place->second].second = node.children[i + 1];
      }
    }
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out_ += ',';
      WriteText(members[i].first);
      out_ += ':';
      HEADGATE_RETURN_IF_ERROR(Write(*members[i].second));
    }
    out_ += '}';
    return absl::OkStatus();
  }

  absl::Status WriteScalar(const DocumentNode& node) {
    const Scalar scalar = Resolve(node);
    switch (scalar.type) {
      case ScalarType::kNull:
        out_ += "null";
        break;
      case ScalarType::kBool:
        out_ += scalar.truth ? "true" : "false";
        break;
      case ScalarType::kInt:
        out_ += fmt::format("{}", scalar.number);
        break;
      case ScalarType::kUnsigned:
        out_ += fmt::format("{}", scalar.magnitude);
        break;
      case ScalarType::kFloat:
        return WriteFloat(node.text);
      case ScalarType::kMistagged:
        return absl::InvalidArgumentError(
            fmt::format("cannot decode `{}` as its tag says", node.text.substr(0, 64)));
      case ScalarType::kString:
        WriteText(node.text);
        break;
    }
    return absl::OkStatus();
  }

  absl::Status WriteFloat(std::string_view text) {
    std::string digits(text);
    std::erase(digits, '_');
    const char* const begin = digits.data() + (digits[0] == '+' ? 1 : 0);
    const char* const end = digits.data() + digits.size();
    double number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || stop != end || !std::isfinite(number)) {
      return absl::InvalidArgumentError(fmt::format("{} is no number in JSON", text.substr(0, 64)));
    }
    out_ += fmt::format("{}", number);
    return absl::OkStatus();
  }

  void WriteText(std::string_view text) {
    out_ += '"';
    for (const char c : text) {
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        out_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> MetadataJson(const DocumentNode& mapping) {
  JsonWriter writer;
  HEADGATE_RETURN_IF_ERROR(writer.Write(mapping));
  std::string json = std::move(writer).Take();
  if (json.size() > kMetadataBytesMax) {
    return absl::InvalidArgumentError(fmt::format("more than {} bytes as JSON", kMetadataBytesMax));
  }
  return json;
}

}  // namespace headgate::rule::read
