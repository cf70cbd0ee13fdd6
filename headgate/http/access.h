// Decides who may read or change state (refund, reset, rules, metrics), in the same way for every
// protocol.
//
// If a credential is set, only clients that presented it; otherwise only clients on this machine.
#pragma once

#include <string>
#include <string_view>

#include "headgate/net/session.h"

namespace headgate::http {

struct Access {
  std::string credential;  // empty: not set

  bool credential_set() const { return !credential.empty(); }
  // Takes the same time for all candidates of the same length.
  bool Matches(std::string_view candidate) const;
  bool MayUseState(const net::Peer& peer, bool authenticated) const {
    return credential_set() ? authenticated : peer.loopback;
  }
};

}  // namespace headgate::http
