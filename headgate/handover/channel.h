// The messages of a handover on a Unix socket (SOCK_SEQPACKET), with descriptors, and files in
// memory. handover.h describes the conversation.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/net/file_descriptor.h"

namespace headgate::handover {

// Linux passes at most 253 descriptors with a message.
inline constexpr size_t kHandoverSocketsMax = 128;

struct HandoverMessage {
  std::string text;
  std::vector<net::FileDescriptor> descriptors;
};

// Does not block. False if the message could not be sent as a whole. At most kHandoverSocketsMax
// descriptors.
bool SendMessage(int socket, std::string_view text, std::span<const int> descriptors = {});

// Returns nothing if the connection has ended (errno is then 0 or an error of the connection), or
// if no message came in time (EAGAIN).
std::optional<HandoverMessage> ReceiveMessage(int socket);

// The process at the other end. Nothing if it runs as another user.
std::optional<pid_t> ProcessOfThisUser(int socket);

// A file in memory. Empty if the system has no memory for it.
net::FileDescriptor FileWith(std::string_view bytes);
// Nothing if it is not a file, or has more than `bytes_max`.
std::optional<std::string> BytesOf(const net::FileDescriptor& file, size_t bytes_max);

}  // namespace headgate::handover
