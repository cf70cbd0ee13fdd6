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

  std::map<std::string, User, std::less<>> users;
  Rights anonymous{};
};

// InvalidArgument names every line that is wrong, up to a bound; no message has a hash in it.
absl::StatusOr<UserTable> ParseUsers(std::string_view text);

}  // namespace headgate::access
