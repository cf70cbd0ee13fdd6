#include "headgate/front/resp/client_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace headgate::front::resp {

ClientList::Registration::Registration(ClientList& list, const ClientState& client,
                                       std::string address)
    : list_(list), id_(client.id), address_(std::move(address)), client_(client) {
  std::lock_guard lock(list_.mutex_);
  list_.registrations_.emplace(id_, this);
}

ClientList::Registration::~Registration() {
  std::lock_guard lock(list_.mutex_);
  list_.registrations_.erase(id_);
}

void ClientList::Registration::Describe(const ClientState& client) {
  std::lock_guard lock(list_.mutex_);
  client_ = client;
}

void ClientList::Registration::OnInput(base::Instant now) {
  // Only one thread writes.
  if (first_input_ns_.load(std::memory_order_relaxed) == 0)
    first_input_ns_.store(now.ns, std::memory_order_relaxed);
  last_input_ns_.store(now.ns, std::memory_order_relaxed);
}

std::string ClientList::Registration::Line(base::Instant now) const {
  std::lock_guard lock(list_.mutex_);
  std::string line;
  AppendLine(now, line);
  return line;
}

// Writes every field of Redis 7.2, because clients read them by name. The fields for transactions,
// subscriptions and buffers are 0.
void ClientList::Registration::AppendLine(base::Instant now, std::string& out) const {
  const auto seconds_since = [now](const std::atomic<int64_t>& ns) {
    const int64_t since = ns.load(std::memory_order_relaxed);
    return since == 0 ? 0 : std::max<int64_t>(0, now.ns - since) / 1'000'000'000;
  };
  const CommandSpec* const command = command_.load(std::memory_order_relaxed);
  fmt::format_to(
      std::back_inserter(out),
      "id={} addr={} laddr= fd=-1 name={} age={} idle={} flags={} db=0 sub=0 psub=0 ssub=0 "
      "multi=-1 qbuf=0 "
      "qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd={} "
      "user={} redir={} resp={} lib-name={} lib-ver={}",
      id_, address_, client_.name, seconds_since(first_input_ns_), seconds_since(last_input_ns_),
      client_.tracking ? "t" : "N", command != nullptr ? command->name : "NULL",
      client_.identity.logged_in() ? client_.identity.user : "default", client_.tracking ? 0 : -1,
      static_cast<int>(client_.version), client_.library_name, client_.library_version);
}

std::string ClientList::Lines(std::span<const uint64_t> ids, base::Instant now) const {
  std::string lines;
  std::lock_guard lock(mutex_);
  const auto append = [&](const Registration& registration) {
    registration.AppendLine(now, lines);
    lines += '\n';
  };
  size_t listed = 0;
  for (const uint64_t id : ids) {
    if (const auto found = registrations_.find(id);
        found != registrations_.end() && ++listed <= kListedMax)
      append(*found->second);
  }
  if (!ids.empty()) return lines;
  for (const auto& [id, registration] : registrations_) {
    if (++listed > kListedMax) break;
    append(*registration);
  }
  return lines;
}

}  // namespace headgate::front::resp
