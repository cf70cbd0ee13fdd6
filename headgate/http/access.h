// Who may change or read state (refund, reset, rules, metrics): one answer for every protocol.
//
// Where a credential is set, whoever presented it; where none is set, whoever comes from this
// machine.
#pragma once

#include <string>
#include <string_view>

#include "headgate/net/session.h"

namespace headgate::http {

struct Access {
  std::string credential;  // empty: none is set

  bool credential_set() const { return !credential.empty(); }
  // Takes the same time for every candidate of one length.
  bool Matches(std::string_view candidate) const;
  bool MayUseState(const net::Peer& peer, bool authenticated) const {
    return credential_set() ? authenticated : peer.loopback;
  }
};

}  // namespace headgate::http
