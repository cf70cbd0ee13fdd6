#include "headgate/front/resp/throttle_script.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <span>
#include <tuple>

#include "headgate/base/text.h"

namespace headgate::front::resp {
namespace {

absl::Status NotOneCall() {
  return absl::InvalidArgumentError(
      "this server runs no Lua: a script must be one call, such as return "
      "redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])");
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool IsNameCharacter(char c) { return c == '_' || base::IsLetter(c) || base::IsDigit(c); }

}  // namespace

// Tokenizer for the subset of Lua that a script of one call can use.
class ThrottleScript::Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // If `token` comes next, skips it and returns true. A name does not match the beginning of a
  // longer one.
  bool Take(std::string_view token) {
    SkipSpace();
    if (!rest_.starts_with(token)) return false;
    if (IsNameCharacter(token.back()) && rest_.size() > token.size() &&
        IsNameCharacter(rest_[token.size()]))
      return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }

  // A string without escapes.
  std::optional<std::string_view> TakeString() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(1, end - 1);
    if (text.find_first_of("\\\n") != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(end + 1);
    return text;
  }

  // A whole number in decimal digits.
  std::optional<std::string_view> TakeDigits() {
    SkipSpace();
    size_t size = 0;
    while (size < rest_.size() && rest_[size] >= '0' && rest_[size] <= '9') ++size;
    if (size == 0 || (size < rest_.size() && (IsNameCharacter(rest_[size]) || rest_[size] == '.')))
      return std::nullopt;
    const std::string_view digits = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return digits;
  }

  // One argument of the call.
  std::optional<Word> TakeWord() {
    for (const auto& [name, kind, all] :
         {std::tuple{"KEYS", Kind::kKey, Kind::kAllKeys},
          std::tuple{"ARGV", Kind::kArgument, Kind::kAllArguments}}) {
      if (Take(name)) return TakeElement(kind);
      const std::string_view before = rest_;
      if (Take("unpack") && Take("(") && Take(name) && Take(")")) return Word{.kind = all};
      rest_ = before;
    }
    const std::string_view before = rest_;
    if (Take("tonumber") || Take("tostring")) {
      if (!Take("(")) return std::nullopt;
      std::optional<Word> word = TakeWord();
      if (!word || !Take(")")) return std::nullopt;
      return word;
    }
    rest_ = before;
    if (const auto text = TakeString()) return Word{.text = std::string(*text)};
    if (const auto digits = TakeDigits()) return Word{.text = std::string(*digits)};
    return std::nullopt;
  }

 private:
  std::optional<Word> TakeElement(Kind kind) {
    if (!Take("[")) return std::nullopt;
    const auto digits = TakeDigits();
    if (!digits || !Take("]")) return std::nullopt;
    Word word{.kind = kind};
    const auto [end, error] =
        std::from_chars(digits->data(), digits->data() + digits->size(), word.index);
    if (error != std::errc() || word.index == 0) return std::nullopt;
    return word;
  }

  void SkipSpace() {
    while (!rest_.empty() && IsSpace(rest_[0])) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

absl::StatusOr<ThrottleScript> ThrottleScript::Parse(std::string_view text) {
  if (text.size() > kTextBytesMax) return NotOneCall();
  Reader reader(text);
  if (!reader.Take("return") || !reader.Take("redis") || !reader.Take(".")) return NotOneCall();
  if ((!reader.Take("call") && !reader.Take("pcall")) || !reader.Take("(")) return NotOneCall();
  ThrottleScript script;
  do {
    auto word = reader.TakeWord();
    if (!word) return NotOneCall();
    script.words_.push_back(*std::move(word));
  } while (reader.Take(","));
  if (!reader.Take(")")) return NotOneCall();
  reader.Take(";");
  if (!reader.AtEnd() || script.words_[0].kind != Kind::kText) return NotOneCall();
  const std::string& command = script.words_[0].text;
  if (!base::EqualsIgnoreCase(command, "cl.throttle") && !base::EqualsIgnoreCase(command, "gcra")) {
    return absl::InvalidArgumentError(
        fmt::format("a script can call CL.THROTTLE or GCRA here, not '{}'", command));
  }
  return script;
}

absl::StatusOr<CommandWords> ThrottleScript::Expand(const ScriptArguments& arguments) const {
  CommandWords command;
  const std::span<const std::string_view> keys = std::span(arguments.words).first(arguments.keys);
  const std::span<const std::string_view> values =
      std::span(arguments.words).subspan(arguments.keys);
  const auto add = [&](std::span<const std::string_view> words) {
    for (const std::string_view word : words) {
      if (!command.Add(word)) return false;
    }
    return true;
  };
  for (const Word& word : words_) {
    const bool of_keys = word.kind == Kind::kKey || word.kind == Kind::kAllKeys;
    const std::span<const std::string_view> list = of_keys ? keys : values;
    bool fits = true;
    if (word.kind == Kind::kText) {
      fits = command.Add(word.text);
    } else if (word.index == 0) {
      fits = add(list);
    } else if (word.index > list.size()) {
      return absl::InvalidArgumentError(fmt::format("the script needs {}[{}], but has only {}",
                                                    of_keys ? "KEYS" : "ARGV", word.index,
                                                    list.size()));
    } else {
      fits = command.Add(list[word.index - 1]);
    }
    if (!fits) return absl::InvalidArgumentError("the script calls with too many arguments");
  }
  return command;
}

}  // namespace headgate::front::resp
