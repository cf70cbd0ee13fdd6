// The names among the upstreams, and the addresses behind them: each address is an upstream of its
// own. Decides when a name is looked up, and what its answer changes. Does no input or output.
//
// The last addresses stay if a lookup fails. As long as none are known, a name stands for itself:
// each connection to it looks it up, and takes the first address that accepts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/net/connector.h"
#include "headgate/net/name_lookup.h"
#include "headgate/proxy/upstream/list.h"

namespace headgate::proxy::upstream {

// An address that requests are sent to.
struct Address {
  net::StreamTarget target{};
  std::string tls_name{};  // that its certificate must have; empty without TLS
  // Addresses with the same number are behind one name; 0: behind none.
  size_t name = 0;

  bool operator==(const Address&) const = default;
};

class Names {
 public:
  // At most this many addresses get requests, so that the choice for each request stays cheap.
  static constexpr size_t kAddressesMax = 256;

  // `interval` is the time between the end of a lookup and the next one. `tls_name` is the name
  // expected in certificates; if it is empty, the host in the list is.
  Names(base::Duration interval, std::string tls_name)
      : interval_(interval), tls_name_(std::move(tls_name)) {}

  // Follows the names of this list from now on. Names that were followed before keep their
  // addresses.
  void Follow(List list, base::Instant now);
  const List& list() const { return list_; }

  // The names to look up now. OnAnswer must be called for each.
  std::vector<net::StreamTarget> TakeDue(base::Instant now);
  // When the next lookup begins, unless all are in progress.
  std::optional<base::Instant> next_due() const;
  bool Follows(const net::StreamTarget& name) const { return Find(name) < names_.size(); }

  struct Heard {
    uint64_t added = 0;     // addresses of the name
    uint64_t removed = 0;   // the same
    uint64_t count = 0;     // of the name's addresses now
    uint64_t failures = 0;  // in a row, this one included
    bool recovered = false;
    bool changed() const { return added + removed > 0; }
  };
  // The order of the addresses does not matter.
  Heard OnAnswer(const net::StreamTarget& name, const absl::StatusOr<net::SocketAddresses>& answer,
                 base::Instant now);

  // Takes over the addresses that the old process knew of the name. They are used until there is an
  // answer.
  void TakeOver(const net::StreamTarget& name, std::vector<net::StreamTarget> addresses);

  // Each address once. With TLS, an address behind two names may be there twice, because each name
  // has a certificate of its own.
  struct Addresses {
    std::vector<Address> all{};
    uint64_t left_out = 0;  // because there were too many
  };
  Addresses Expand() const;

  struct State {
    net::StreamTarget name{};
    std::vector<net::StreamTarget> addresses{};  // empty: none are known yet
    std::optional<base::Instant> answered{};     // last
  };
  std::vector<State> states() const;

 private:
  struct Name {
    net::StreamTarget target{};
    // At most kAddressesMax; the ones that are known longest come first.
    std::vector<net::StreamTarget> addresses{};
    uint64_t left_out = 0;                    // of the last answer
    std::optional<base::Instant> answered{};  // last
    std::optional<base::Instant> due{};       // absent: a lookup is in progress
    uint64_t failures = 0;                    // in a row
  };

  // The position of this name, or the number of names.
  size_t Find(const net::StreamTarget& target) const;
  base::Duration PauseAfter(const Name& name) const;

  const base::Duration interval_;
  const std::string tls_name_;
  List list_;
  std::vector<Name> names_;
};

}  // namespace headgate::proxy::upstream
