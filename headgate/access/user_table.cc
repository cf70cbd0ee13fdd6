#include "headgate/access/user_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "headgate/base/text.h"

namespace headgate::access {
namespace {

constexpr size_t kNameBytesMax = 128;
constexpr size_t kProblemsMax = 10;
constexpr std::string_view kAnonymous = "*";
constexpr std::string_view kNoPassword = "-";

// The words of a line, without its comment.
std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (true) {
    const auto begin = std::find_if_not(line.begin(), line.end(), is_space);
    line.remove_prefix(static_cast<size_t>(begin - line.begin()));
    if (line.empty() || line.front() == '#') return words;
    const auto end = std::find_if(line.begin(), line.end(), is_space);
    words.push_back(line.substr(0, static_cast<size_t>(end - line.begin())));
    line.remove_prefix(words.back().size());
  }
}

bool IsUserName(std::string_view name) {
  return name.size() <= kNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
           return c > ' ' && c < 0x7f && c != ':';
         });
}

absl::StatusOr<Rights> ReadRights(std::string_view list) {
  Rights rights;
  while (!list.empty()) {
    const std::string_view word = base::TakeListItem(list);
    const std::optional<Right> right = RightByName(word);
    if (!right) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' is not a right: check, refund, read or admin", word.substr(0, 40)));
    }
    rights = rights.With(*right);
  }
  return rights;
}

absl::Status ReadLine(const std::vector<std::string_view>& words, UserTable& table, bool& stated) {
  if (words.size() != 3)
    return absl::InvalidArgumentError("a line has a name, rights and the hash of a password");
  const std::string_view name = words[0];
  HEADGATE_ASSIGN_OR_RETURN(const Rights rights, ReadRights(words[1]));
  if (name == kAnonymous) {
    if (words[2] != kNoPassword)
      return absl::InvalidArgumentError("clients without a login have no password: write -");
    if (std::exchange(stated, true))
      return absl::InvalidArgumentError("the rights without a login are stated twice");
    table.anonymous = rights;
    return absl::OkStatus();
  }
  if (!IsUserName(name)) {
    return absl::InvalidArgumentError(
        "a name has at most 128 characters of ASCII, without spaces and colons");
  }
  auto password = ParsePasswordHash(words[2]);
  if (!password.ok()) return password.status();
  if (table.users.size() >= UserTable::kUsersMax)
    return absl::InvalidArgumentError(fmt::format("more than {} users", UserTable::kUsersMax));
  if (!table.users.try_emplace(std::string(name), User{*std::move(password), rights}).second)
    return absl::InvalidArgumentError(fmt::format("the user '{}' is stated twice", name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UserTable> ParseUsers(std::string_view text) {
  UserTable table;
  bool anonymous_stated = false;
  std::string problems;
  size_t problem_count = 0;
  for (size_t number = 1; !text.empty() && problem_count < kProblemsMax; ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string_view> words = WordsOf(line);
    if (words.empty()) continue;
    const absl::Status status = ReadLine(words, table, anonymous_stated);
    if (status.ok()) continue;
    ++problem_count;
    problems += fmt::format("{}line {}: {}", problems.empty() ? "" : "; ", number,
                            std::string(status.message()));
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems);
  // A file that is being written may be empty for a moment.
  if (table.users.empty() && !anonymous_stated)
    return absl::InvalidArgumentError("the file names no users");
  if (const size_t costs = CostsOf(table).size(); costs > UserTable::kCostsMax) {
    return absl::InvalidArgumentError(fmt::format(
        "the hashes have {} different costs (ln, r, p); each login takes the time of all of them, "
        "and at most {} are allowed",
        costs, UserTable::kCostsMax));
  }
  return table;
}

std::vector<PasswordHash> CostsOf(const UserTable& table) {
  std::vector<PasswordHash> costs;
  for (const auto& [name, user] : table.users) {
    if (std::none_of(costs.begin(), costs.end(),
                     [&](const PasswordHash& cost) { return HaveSameCost(cost, user.password); })) {
      costs.push_back(HashOfNobody(user.password));
    }
  }
  if (costs.empty()) costs.push_back(HashOfNobody(DefaultCost()));
  return costs;
}

std::vector<PasswordHash> HashesBeside(const PasswordHash* own,
                                       const std::vector<PasswordHash>& costs) {
  std::vector<PasswordHash> others;
  std::copy_if(costs.begin(), costs.end(), std::back_inserter(others),
               [&](const PasswordHash& cost) { return !own || !HaveSameCost(cost, *own); });
  return others;
}

}  // namespace headgate::access
