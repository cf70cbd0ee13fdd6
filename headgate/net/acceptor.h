// Accepts the connections of one listening socket on one loop. Internal to net.
#pragma once

#include <cstdint>
#include <functional>

#include "headgate/net/event_loop.h"
#include "headgate/net/file_descriptor.h"

struct sockaddr_storage;

namespace headgate::net {

class Loop;

// Whether an accepted connection took a spare descriptor because the system had no other left.
enum class AcceptedWith : uint8_t { kOwnFile, kSpareFile };

class Acceptor final : private SocketPoller::Socket {
 public:
  // Passes a connection to the loop that will serve it.
  using HandOver =
      std::function<void(FileDescriptor socket, const sockaddr_storage& peer, AcceptedWith with)>;

  // `spares_kept`: see SpareFiles.
  Acceptor(Loop& loop, FileDescriptor socket, size_t spares_kept, HandOver hand_over);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;

  // Accepts from now on.
  void Start();
  // Accepts all waiting connections for which there is room.
  void AcceptAll();

 private:
  enum class Result : uint8_t { kNoneLeft, kTurnOver, kNoRoom };

  void OnEvents(uint32_t events) override;
  Result AcceptSome();
  void Pause();
  void Resume();

  Loop& loop_;
  const FileDescriptor socket_;
  const size_t spares_kept_;
  const HandOver hand_over_;
  Timer pause_;
};

}  // namespace headgate::net
