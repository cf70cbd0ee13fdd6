// The list of connected Redis clients, for CLIENT LIST and CLIENT INFO.
//
// One per process, shared by the loops; thread-safe. A client takes the lock when it connects,
// disconnects or describes itself, never for a decision.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/commands.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// The data about one client that CLIENT INFO and CLIENT LIST show.
struct ClientState {
  uint64_t id = 0;
  wire::RespVersion version = wire::RespVersion::k2;
  access::Identity identity{};
  bool tracking = false;
  std::string name{};
  std::string library_name{};
  std::string library_version{};
};

class ClientList {
 public:
  // CLIENT LIST shows at most this many clients. Their descriptions can add up to 11 MB.
  static constexpr size_t kListedMax = 10'000;

  // The entry of a client, which lives as long as its session. Used by the session's loop.
  class Registration {
   public:
    // `address` is the client's address as text.
    Registration(ClientList& list, const ClientState& client, std::string address);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    // Updates the client's description of itself.
    void Describe(const ClientState& client);
    void OnInput(base::Instant now);
    void OnCommand(const CommandSpec* command) {
      command_.store(command, std::memory_order_relaxed);
    }

    // "id=1 addr=127.0.0.1:50000 name=…", as in Redis's CLIENT INFO, without a line end.
    std::string Line(base::Instant now) const;

   private:
    friend class ClientList;
    void AppendLine(base::Instant now, std::string& out) const;  // requires the list's lock

    ClientList& list_;
    const uint64_t id_;
    const std::string address_;
    ClientState client_;                      // guarded by the list's lock
    std::atomic<int64_t> first_input_ns_{0};  // 0: none yet
    std::atomic<int64_t> last_input_ns_{0};
    std::atomic<const CommandSpec*> command_{nullptr};  // the last command
  };

  ClientList() = default;
  ClientList(const ClientList&) = delete;
  ClientList& operator=(const ClientList&) = delete;

  // One line per client, ordered by client number. If `ids` is not empty, only for the clients in
  // `ids`.
  std::string Lines(std::span<const uint64_t> ids, base::Instant now) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, const Registration*> registrations_;  // by client number
};

}  // namespace headgate::front::resp
