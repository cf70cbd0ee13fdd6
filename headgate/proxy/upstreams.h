// The upstreams of one loop: their addresses, their connections, and the queue of the requests that
// wait for one. Loops share nothing.
//
// A request goes to the address with the fewest outstanding requests, among the addresses that are
// not out (health.h) or down by active checks (health_check.h); if all are, among all. A request
// that waits for a connection that is being made counts as outstanding. On an address a request
// takes the connection that was used last, so that the others become idle and are closed.
//
// A limit on requests per cycle does not limit how long requests last: a client with long requests,
// such as slow uploads, could hold all places. So a client gets another place only within its part
// (dynamic_threshold.h); its requests beyond that wait, and others pass them (waiter_queue.h). The
// queue is divided in the same way. The last free place of each address is reserved for clients
// without a place. So such a client finds one even if another address leaves, or has never accepted
// a connection.
//
// A connection of HTTP/2 that takes no more exchanges, after GOAWAY for example, drains: it keeps
// its open exchanges, however long they last. Such connections have a bound of their own, so that
// they do not take the places of others. A connection with many cancelled requests is worn: the
// upstream may end it, so it is retired to protect its other requests (ClientSession::worn), but
// only within that bound. Only the service itself can make more connections drain. If their number
// beyond the bound exceeds half of `connections_max`, all free places of the address are reserved
// for clients without a place.
//
// An address may not answer at all. If a connection is not made within 250 ms, further connections
// are opened for the requests that wait, at addresses that are not slow (RFC 8305, 5).
//
// A name may have addresses at which nobody listens, as one for IPv6 of a service that has only
// IPv4. So an address that has never accepted a connection, while another address of its name has,
// is set aside after its first failure, and this does not count as an event.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headgate/base/counter.h"
#include "headgate/base/time.h"
#include "headgate/proxy/address_state.h"
#include "headgate/proxy/health.h"
#include "headgate/proxy/places.h"
#include "headgate/proxy/upstream_connection.h"
#include "headgate/proxy/waiter_queue.h"

namespace headgate::proxy {

struct UpstreamsOptions {
  // Connections to each address, for each loop, and as many again that drain. Raise it for slow
  // upstreams that take many requests at once.
  size_t connections_max = 128;
  // Exchanges that a new connection is expected to carry at once: 1 for HTTP/1.
  size_t exchanges_per_connection = 1;
  // Requests that wait for a connection, for each loop.
  size_t queue_max = 1024;
  // How long a connection is kept without a request. Shorter than the upstream's own time: Node.js
  // closes after 5 s.
  base::Duration idle_timeout = std::chrono::seconds(4);
  // Active checks in a row that must fail before an address gets no requests. One that passes is
  // enough to get them again.
  uint32_t failed_checks_max = 2;
  // Attempts to connect for one request, at most one for each address.
  size_t connects_max = 3;
  HealthOptions health{};
};

struct ServiceAddress {
  size_t id = 0;
  // Addresses with the same number are behind one name. 0: it is behind none.
  size_t name = 0;
};

// The loop writes, any thread reads.
struct UpstreamsCounters {
  base::Counter connections{};  // open, or being made
  base::Counter connects{};     // attempts
  base::Counter connect_failures{};
  base::Counter tls_failures{};      // of these, because of TLS
  base::Counter outstanding{};       // requests on connections
  base::Counter queued{};            // requests that wait now
  base::Counter waits_for_place{};   // requests that had to wait, because no place was free
  base::Counter waits_for_client{};  // the same, because their client had its part of the places
  base::Counter refusals_full{};     // requests refused because the queue was full
  base::Counter refusals_client{};   // the same, because their client had its part of the queue
  base::Counter out{};               // how often an address was put out
  base::Counter checks_passed{};
  base::Counter checks_failed{};
};

class Upstreams final : public Places {
 public:
  // `wake` makes the loop call OnWoken at the end of its turn. The options and counters must
  // outlive this object, which has no addresses at first.
  Upstreams(const UpstreamsOptions& options, Connect connect, UpstreamsCounters& counters,
            std::function<void()> wake);
  ~Upstreams();
  Upstreams(const Upstreams&) = delete;

  Taken Take(Waiter& waiter, base::Instant now) override;
  void Forget(Waiter& waiter) override;

  // Replaces the addresses; at least one. An address whose id is known stays as it is. An address
  // that is missing now retires: its connections finish their exchanges, and get no others. If it
  // comes back before they have ended, they count in its bound, and its health starts as that of a
  // new address.
  void SetAddresses(std::span<const ServiceAddress> to, base::Instant now);
  // Whether this address has retired, and still has connections.
  bool HasRetired(size_t id) const;

  // The result of an active check of this address. Does nothing if it has retired.
  void OnChecked(size_t id, bool passed);

  // The state of each address, in `states`, whose memory is used again.
  void DescribeAddresses(std::vector<AddressState>& states) const;

  // Whether clients are held to their parts. At first they are.
  void SetDivides(bool divides);

  // Serves the queue, and destroys connections that have ended.
  void OnWoken(base::Instant now);
  // Closes connections that were idle for too long. Called every tick.
  void OnTick(base::Instant now);
  // Ends the queue: requests that wait, or would have to, get no place.
  void EndQueue(base::Instant now);
  // Ends everything: exchanges fail, nobody waits any more, and nothing begins.
  void Close(base::Instant now);

 private:
  struct Address;
  using Addresses = std::vector<std::unique_ptr<Address>>;
  // A connection, and all places on it.
  struct Link final : Place, UpstreamConnection::Owner {
    Link(Upstreams& all, Address& to, base::Instant now)
        : upstreams(all), address(to), began(now) {}
    http::ClientSession& session() override { return connection->session(); }
    bool reused() const override { return used > 1; }
    bool speaks_http2() const override { return connection->speaks_http2(); }
    void Leave(Waiter& waiter, Ended ended, base::Instant now) override {
      upstreams.OnLeft(*this, waiter, ended, now);
    }
    void OnConnected(base::Instant now) override { upstreams.OnConnected(*this, now); }
    void OnChanged(base::Instant now) override { upstreams.NoteFree(*this, now); }
    void OnClosed(UpstreamConnection::End end, std::string_view why, base::Instant now) override {
      upstreams.OnClosed(*this, end, why, now);
    }
    // Whether one more exchange may begin now.
    bool has_place() const {
      return connected && connection->may_begin() && connection->session().free_places() > 0;
    }

    Upstreams& upstreams;
    Address& address;
    std::unique_ptr<UpstreamConnection> connection;
    const base::Instant began;
    bool connected = false;
    bool is_slow = false;       // to connect
    bool is_free = false;       // in Address::free
    bool has_answered = false;  // an exchange has ended well
    bool drains = false;        // speaks HTTP/2, and takes no more exchanges
    uint64_t used = 0;          // exchanges, including open ones
    uint64_t outstanding = 0;
    base::Instant idle_since{};
  };
  struct Address {
    Address(size_t number, uint64_t places_expected)
        : id(number), connection_places(places_expected) {}

    const size_t id;
    size_t name = 0;              // see ServiceAddress
    bool retired = false;         // gets no more requests
    bool has_accepted = false;    // a connection, at any time
    uint32_t failed_checks = 0;   // in a row
    bool connect_failed = false;  // the last attempt to connect
    std::vector<std::unique_ptr<Link>> links;
    std::deque<Link*> free;  // that may have a place; the last one was used last
    uint64_t outstanding = 0;
    uint64_t draining = 0;              // links whose connection drains
    uint64_t outstanding_draining = 0;  // of `outstanding`, on links that drain
    uint64_t slow = 0;                  // of `connecting`, the ones that take long
    uint64_t connecting = 0;            // connections that are being made, for requests that wait
    uint64_t connection_places = 0;     // of the connection that was used last, as far as known
    Health health;
    AsideBecause failed = AsideBecause::kNot;  // the last failure that `health` was told of

    void Revive() {
      retired = connect_failed = false;
      failed_checks = 0;
      health = Health();
    }
    uint64_t load() const { return outstanding + connecting; }
    // Links that count in the bound `connections`. Up to `connections` draining links do not count.
    uint64_t bounded_links(uint64_t connections) const {
      return links.size() - std::min(draining, connections);
    }
    // The places on connections that take exchanges, with this many connections.
    uint64_t places(uint64_t connections) const {
      return (connections - std::min(connections, drained(connections))) * connection_places;
    }
    // How many of these connections cannot exist because more than `connections` drain.
    uint64_t drained(uint64_t connections) const {
      return draining - std::min(draining, connections);
    }
    uint64_t free_places(uint64_t connections) const {
      const uint64_t all = places(connections);
      return all - std::min(all, outstanding - outstanding_draining);
    }
  };

  static std::unique_ptr<Address> TakeOut(Addresses& from, size_t id);
  void OnConnected(Link& link, base::Instant now);
  void NoteConnectEnd(Link& link);
  void OnClosed(Link& link, UpstreamConnection::End end, std::string_view why, base::Instant now);
  bool IsOut(const Address& address, base::Instant now) const;
  bool AllAreOut(base::Instant now) const;
  // Whether addresses that are slow to connect are passed over, because there are others.
  bool AvoidsSlow(base::Instant now) const;
  // Notes which connections are slow to be made, and opens others for the requests that wait.
  void NoteSlow(base::Instant now);
  // Whether this address has never accepted a connection, but another address of its name has.
  bool NeverAcceptedUnlikeOthers(const Address& address) const;
  void OnLeft(Link& link, Waiter& waiter, Ended ended, base::Instant now);
  void OnHealth(Address& address, Ended ended, base::Instant now);
  void OnFailure(Address& address, AsideBecause why, base::Instant now);
  void OnConnectFailure(Address& address, base::Instant now);
  void OnConnectFailed(UpstreamConnection::End end, std::string_view why, base::Instant now);
  // Places on connections, including connections that do not exist yet.
  struct FreePlaces {
    uint64_t count = 0;
    uint64_t kept = 1;  // of these, for clients without a place
  };
  FreePlaces CountFree(base::Instant now) const;
  // The free places of this address that are reserved for clients without a place.
  uint64_t KeptOf(const Address& address) const;
  // Whether all free places of this address are reserved ones.
  bool IsLastKept(const Address& address) const;
  // Whether the waiter's client may take one more of these places, counting `promised` places that
  // it is about to get.
  bool IsWithinPart(const Waiter& waiter, FreePlaces free, uint64_t promised = 0) const;
  bool MayServe(FreePlaces free) { return !queue_.empty() && IsWithinPart(queue_.front(), free); }
  enum class Need : uint8_t { kPlace, kPlaceOrConnection };
  // The address for this request, which must be the next one; null if no address has a place (or
  // may open a connection).
  Address* Choose(Need need, const Waiter& waiter, base::Instant now);
  // The connection for the next request to this address, or null. Removes connections without a
  // place from `free`.
  Link* FreeLink(Address& address);
  Place& Occupy(Link& link, Waiter& waiter);
  static void NotePlaces(Link& link);
  void Open(Address& address, base::Instant now);
  // Opens connections for requests that wait, if some are allowed.
  void OpenForQueue(base::Instant now);
  void NoteFree(Link& link, base::Instant now);
  // Retires a connection that is worn, and notes whether it drains.
  void NoteDraining(Link& link);
  // Removes the link from its address, and destroys it at the end of the turn.
  void Bury(Link& link);
  void EndLink(Link& link, base::Instant now);
  // Ends the connections without a request, after the idle timeout or if the address has retired.
  void EndIdle(Address& address, base::Instant now);
  void NoteUsed(const Address& address);

  const UpstreamsOptions& options_;
  const Connect connect_;
  UpstreamsCounters& counters_;
  const std::function<void()> wake_;
  Addresses addresses_;
  Addresses retired_;  // removed addresses that still have connections
  std::vector<std::unique_ptr<Link>> dead_;
  WaiterQueue queue_;
  size_t connecting_ = 0;
  size_t slow_ = 0;   // of `connecting_`, the ones that take long
  size_t first_ = 0;  // the address that is considered first: the one after the last that was used
  bool divides_ = true;
  bool queue_ended_ = false;
  bool closed_ = false;
};

}  // namespace headgate::proxy
