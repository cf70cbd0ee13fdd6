// Reads the request that a NOTIFY frame of HAProxy describes. The arguments of the message have
// fixed names; any other argument is a header of its name:
//
//   args src=src method=method path=path query=query host=req.hdr(host) headers=req.hdrs_bin
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/mapping/request_head.h"

namespace headgate::front::spoe {

// Reused for all frames of a session, together with its memory.
class Notify {
 public:
  // The payload of a frame. False if it is malformed, or has no message or more than one. The
  // request is valid until the next call, and only as long as the payload.
  bool Read(std::string_view payload);

  mapping::RequestHead& request() { return request_; }

 private:
  bool ReadArgument(std::string_view& bytes);
  bool ReadHeaders(std::string_view bytes);

  mapping::RequestHead request_;
  std::vector<mapping::HeaderField> fields_;
  std::string_view path_;
  std::string_view query_;
  std::string target_;
};

}  // namespace headgate::front::spoe
