// The users of a server, as their file states them: one per line,
//
//   # name   rights        hash of the password (`headgate hash-password`)
//   checker  check         $scrypt$ln=15,r=8,p=1$…
//   operator check,refund  $scrypt$ln=15,r=8,p=1$…
//   *        check         -
//
// `*` states the rights of clients that have not logged in; without such a line they have none.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/access/password_hash.h"
#include "headgate/access/rights.h"
#include "headgate/base/status.h"

namespace headgate::access {

struct User {
  PasswordHash password;
  Rights rights;
};

struct UserTable {
  static constexpr size_t kUsersMax = 10'000;
  // Hashes that take different times to compute.
  static constexpr size_t kCostsMax = 4;

  std::map<std::string, User, std::less<>> users;
  Rights anonymous{};
};

// InvalidArgument names every line that is wrong, up to a bound; no message has a hash in it.
absl::StatusOr<UserTable> ParseUsers(std::string_view text);

// For each cost, a hash that no password matches; at least one hash.
std::vector<PasswordHash> CostsOf(const UserTable& table);

// The hashes to compute in addition to the user's own (null: there is no such user). Together with
// it they have each cost once, so the time of a login reveals neither whether the user exists nor
// the cost of its hash.
std::vector<PasswordHash> HashesBeside(const PasswordHash* own,
                                       const std::vector<PasswordHash>& costs);

}  // namespace headgate::access
