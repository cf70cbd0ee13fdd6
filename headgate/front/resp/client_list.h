// Who is connected over the Redis protocol, for CLIENT LIST and CLIENT INFO.
//
// One per process, shared by the loops; thread-safe. Its lock is taken when a client connects,
// leaves or says something about itself, never by a decision.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/front/resp/commands.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// What CLIENT INFO and CLIENT LIST show of one client.
struct ClientState {
  uint64_t id = 0;
  wire::RespVersion version = wire::RespVersion::k2;
  bool authenticated = false;
  bool tracking = false;
  std::string name{};
  std::string library_name{};
  std::string library_version{};
};

class ClientList {
 public:
  // CLIENT LIST shows at most this many clients: what they say about themselves may be 11 MB.
  static constexpr size_t kListedMax = 10'000;

  // A client's registration in the list, for as long as its session lives. Used by the session's
  // loop.
  class Registration {
   public:
    // `address` is where the client connects from, as text.
    Registration(ClientList& list, const ClientState& client, std::string address);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    // The client has said something about itself.
    void Describe(const ClientState& client);
    void OnInput(base::Instant now);
    void OnCommand(const CommandSpec* command) {
      command_.store(command, std::memory_order_relaxed);
    }

    // "id=1 addr=127.0.0.1:50000 name=…", as Redis's CLIENT INFO, without a line end.
    std::string Line(base::Instant now) const;

   private:
    friend class ClientList;
    void AppendLine(base::Instant now, std::string& out) const;  // with the list's lock held

    ClientList& list_;
    const uint64_t id_;
    const std::string address_;
    ClientState client_;                      // guarded by the list's lock
    std::atomic<int64_t> first_input_ns_{0};  // 0: none yet
    std::atomic<int64_t> last_input_ns_{0};
    std::atomic<const CommandSpec*> command_{nullptr};  // the last one
  };

  ClientList() = default;
  ClientList(const ClientList&) = delete;
  ClientList& operator=(const ClientList&) = delete;

  // A line for each client, in the order of their numbers; of those in `ids` alone if there are
  // any.
  std::string Lines(std::span<const uint64_t> ids, base::Instant now) const;

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, const Registration*> registrations_;  // by client number
};

}  // namespace headgate::front::resp
