#include "headgate/proxy/upstream/names.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <utility>

#include "headgate/net/name_targets.h"

namespace headgate::proxy::upstream {
namespace {

// Between the lookups of a name that has had no answer yet.
constexpr base::Duration kFirstAnswerPause = std::chrono::seconds(1);

bool IsName(const net::StreamTarget& target) { return net::KnownAddresses(target).empty(); }

// Writes a target that is an address in the same way as net::TargetOf does, so that equal addresses
// compare equal. Returns other targets unchanged.
net::StreamTarget InOneSpelling(const net::StreamTarget& target) {
  const net::SocketAddresses known = net::KnownAddresses(target);
  return target.unix_path.empty() && known.size() == 1 ? net::TargetOf(known.front()) : target;
}

}  // namespace

size_t Names::Find(const net::StreamTarget& target) const {
  const auto found = std::find_if(names_.begin(), names_.end(),
                                  [&](const Name& name) { return name.target == target; });
  return static_cast<size_t>(found - names_.begin());
}

void Names::Follow(List list, base::Instant now) {
  list_ = std::move(list);
  std::vector<Name> names;
  for (const net::StreamTarget& target : list_.targets) {
    if (!IsName(target)) continue;
    const size_t known = Find(target);
    names.push_back(known < names_.size() ? std::move(names_[known])
                                          : Name{.target = target, .due = now});
  }
  names_ = std::move(names);
}

std::vector<net::StreamTarget> Names::TakeDue(base::Instant now) {
  std::vector<net::StreamTarget> due;
  for (Name& name : names_) {
    if (!name.due || *name.due > now) continue;
    name.due.reset();
    due.push_back(name.target);
  }
  return due;
}

std::optional<base::Instant> Names::next_due() const {
  std::optional<base::Instant> next;
  for (const Name& name : names_) {
    if (name.due && (!next || *name.due < *next)) next = name.due;
  }
  return next;
}

base::Duration Names::PauseAfter(const Name& name) const {
  return name.answered ? interval_ : std::min(interval_, kFirstAnswerPause);
}

Names::Heard Names::OnAnswer(const net::StreamTarget& target,
                             const absl::StatusOr<net::SocketAddresses>& answer,
                             base::Instant now) {
  Heard heard;
  const size_t at = Find(target);
  if (at == names_.size()) return heard;
  Name& name = names_[at];
  if (!answer.ok() || answer->empty()) {
    heard.failures = ++name.failures;
    heard.count = name.addresses.size();
    name.due = now + PauseAfter(name);
    return heard;
  }
  heard.recovered = std::exchange(name.failures, 0) > 0;
  name.answered = now;
  name.due = now + PauseAfter(name);
  absl::flat_hash_set<std::string> found;  // hosts; the port is always that of the name
  for (const net::SocketAddress& address : *answer) found.insert(net::TargetOf(address).host);
  heard.removed =
      std::erase_if(name.addresses, [&](const auto& old) { return !found.contains(old.host); });
  for (const net::StreamTarget& old : name.addresses) found.erase(old.host);
  // The others are new. They come in the order of the answer.
  for (const net::SocketAddress& address : *answer) {
    if (name.addresses.size() == kAddressesMax) break;
    net::StreamTarget one = net::TargetOf(address);
    if (found.erase(one.host) == 0) continue;
    name.addresses.push_back(std::move(one));
    ++heard.added;
  }
  name.left_out = found.size();
  heard.count = name.addresses.size();
  return heard;
}

void Names::TakeOver(const net::StreamTarget& target, std::vector<net::StreamTarget> addresses) {
  const size_t at = Find(target);
  if (at < names_.size() && !names_[at].answered) names_[at].addresses = std::move(addresses);
}

Names::Addresses Names::Expand() const {
  Addresses expanded;
  absl::flat_hash_set<std::string> seen;
  const auto add = [&](Address one) {
    // A space is in no host.
    if (!seen.insert(one.target.ToString() + " " + one.tls_name).second) return;
    if (expanded.all.size() == kAddressesMax) {
      ++expanded.left_out;
    } else {
      expanded.all.push_back(std::move(one));
    }
  };
  for (size_t i = 0; i < list_.targets.size(); ++i) {
    const net::StreamTarget& listed = list_.targets[i];
    const std::string& own_name = tls_name_.empty() ? listed.host : tls_name_;
    const std::string tls_name = list_.tls ? own_name : "";
    const size_t at = Find(listed);
    if (at == names_.size() || names_[at].addresses.empty()) {
      add({.target = InOneSpelling(listed), .tls_name = tls_name});
      continue;
    }
    for (const net::StreamTarget& address : names_[at].addresses)
      add({.target = address, .tls_name = tls_name, .name = i + 1});
    expanded.left_out += names_[at].left_out;
  }
  return expanded;
}

std::vector<Names::State> Names::states() const {
  std::vector<State> states;
  for (const Name& name : names_)
    states.push_back({.name = name.target, .addresses = name.addresses, .answered = name.answered});
  return states;
}

}  // namespace headgate::proxy::upstream
