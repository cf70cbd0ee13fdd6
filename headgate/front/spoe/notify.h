// Reads the request that a NOTIFY frame of HAProxy describes. The arguments of the message have
// fixed names; any other argument is a header of its name. Numbers, booleans and addresses count as
// their texts:
//
//   args src=src method=method path=path query=query host=req.hdr(host) headers=req.hdrs_bin
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/mapping/described_request.h"
#include "headgate/wire/spop.h"

namespace headgate::front::spoe {

enum class NotifyContent : uint8_t {
  kRequest,
  kMalformed,        // invalid, or without a message
  kSeveralMessages,  // HAProxy puts all messages of one event into one frame
};

// Reused for all frames of a session, together with its memory.
class Notify {
 public:
  // Reads the payload of a frame. The request is valid until the next call, and only as long as the
  // payload.
  NotifyContent Read(std::string_view payload);

  mapping::DescribedRequest& request() { return request_; }

 private:
  bool ReadMessage(std::string_view& bytes);
  bool ReadArgument(std::string_view& bytes);
  bool ReadHeaders(std::string_view bytes);
  void ReadSource(const wire::SpopValue& value);

  mapping::DescribedRequest request_;
  std::vector<mapping::HeaderField> fields_;
  std::string_view path_;
  std::string_view query_;
  bool has_no_path_ = false;  // HAProxy says that the request has none
  std::string target_;
  // The texts of numbers, booleans and addresses. A deque, so that they do not move.
  std::deque<std::string> texts_;
};

}  // namespace headgate::front::spoe
