// Accepts the connections of one listening socket on one loop. Internal to net.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>

#include "headgate/net/file_descriptor.h"

struct sockaddr_storage;

namespace headgate::net {

class Loop;

// Whether an accepted connection took a spare descriptor because the system had no other left.
enum class AcceptedWith : uint8_t { kOwnFile, kSpareFile };

class Acceptor {
 public:
  // Passes a connection to the loop that will serve it.
  using HandOver =
      std::function<void(FileDescriptor socket, const sockaddr_storage& peer, AcceptedWith with)>;

  // `spares_kept`: see SpareFiles.
  Acceptor(Loop& loop, FileDescriptor socket, size_t spares_kept, HandOver hand_over);
  Acceptor(const Acceptor&) = delete;

  // Accepts from now on, until the loop drains or ends.
  void Start();
  // Accepts all waiting connections for which there is room.
  void AcceptAll();

 private:
  enum class Result : uint8_t { kNoneLeft, kTurnOver, kNoRoom };

  boost::asio::awaitable<void> Run();
  Result AcceptSome();

  Loop& loop_;
  boost::asio::posix::stream_descriptor socket_;
  const size_t spares_kept_;
  const HandOver hand_over_;
};

}  // namespace headgate::net
