// Collects the fields of a header block into the head of a request or response, or into trailers,
// and validates them strictly (field_rules.h; RFC 9113, 8.2 and 8.3; RFC 8441).
//
// A block is malformed from its first invalid field on. It is too large from the field on that
// exceeds the bounds; later fields are only counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/http/fields.h"
#include "headgate/http/http2/field_rules.h"
#include "headgate/http/message.h"

namespace headgate::http::http2 {

// Name, value and 32 for each field are counted (RFC 9113, 6.5.2).
struct HeadBounds {
  size_t bytes_max = size_t{64} << 10;
  size_t fields_max = 100;
};

// The regular fields of a block, which all kinds of blocks share.
class FieldReader {
 public:
  explicit FieldReader(const HeadBounds& bounds) : bounds_(bounds) {}

  // Whether the block decodes to several times the bound, which only an attack does.
  bool is_bomb() const { return bytes_ / 4 > bounds_.bytes_max; }
  bool too_large() const { return bytes_ > bounds_.bytes_max || count_ > bounds_.fields_max; }

 protected:
  // Counts a field. Returns false if the block has become too large.
  bool Count(std::string_view name, std::string_view value);
  // Takes a regular field of a head. Returns false if it is invalid.
  bool AddRegular(std::string_view name, std::string_view value, Fields& fields);
  void Restart();

  std::string host_{};
  std::string cookies_{};
  std::optional<uint64_t> length_{};
  bool regular_seen_ = false;  // no pseudo field may follow
  bool host_seen_ = false;
  bool expectation_seen_ = false;
  bool expects_continue_ = false;
  bool te_trailers_ = false;

 private:
  const HeadBounds& bounds_;
  size_t bytes_ = 0;
  size_t count_ = 0;
};

class RequestHeadReader : public FieldReader {
 public:
  // `lenient`: methods may have lower-case letters, and hosts any form, as over HTTP/1.
  explicit RequestHeadReader(const HeadBounds& bounds, bool lenient = false)
      : FieldReader(bounds), lenient_(lenient) {}

  enum class Verdict : uint8_t {
    kValid,
    kMalformed,
    kTooLarge,          // 431
    kConnect,           // CONNECT without a protocol, or for HTTP itself: 501
    kOtherExpectation,  // 417
  };

  void Begin();
  // Returns false if the field makes the head malformed.
  bool Add(std::string_view name, std::string_view value);
  // `ended`: the request has no body. If valid, `head()` may be moved from.
  Verdict Finish(bool ended);
  RequestHead& head() { return head_; }

 private:
  bool AddPseudo(std::string_view name, std::string_view value);
  bool TakeAuthority();

  const bool lenient_;
  RequestHead head_;
  bool malformed_ = false;
  bool connect_ = false;
};

class ResponseHeadReader : public FieldReader {
 public:
  using FieldReader::FieldReader;

  enum class Verdict : uint8_t { kInformational, kFinal, kInvalid };

  struct Request {
    bool head = false;    // the method
    bool tunnel = false;  // extended CONNECT
  };

  void Begin();
  bool Add(std::string_view name, std::string_view value);
  Verdict Finish(const Request& request, bool ended);
  ResponseHead& head() { return head_; }

 private:
  ResponseHead head_;
  bool malformed_ = false;
  bool status_seen_ = false;
};

class TrailerReader : public FieldReader {
 public:
  // Trailers must not have a field of `never`, either.
  explicit TrailerReader(const HeadBounds& bounds, std::span<const std::string> never = {})
      : FieldReader(bounds), never_(never) {}

  void Begin();
  bool Add(std::string_view name, std::string_view value);
  // Whether the block is valid. Trailers must end the stream.
  bool Finish(bool ended) const { return ended && !malformed_ && !too_large(); }
  const Fields& fields() const { return fields_; }

 private:
  const std::span<const std::string> never_;
  Fields fields_;
  bool malformed_ = false;
};

}  // namespace headgate::http::http2
