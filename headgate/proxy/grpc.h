// The part of gRPC over HTTP/2 that a proxy needs: requests in its form, deadlines, status codes.
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/http/message.h"

namespace headgate::proxy {

// https://grpc.github.io/grpc/core/md_doc_statuscodes.html
enum class GrpcStatus : uint8_t {
  kUnknown = 2,
  kDeadlineExceeded = 4,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

// Whether the client expects answers in the form of gRPC: application/grpc, also with a suffix
// (+proto) or parameters, over HTTP/2. It is not the form of application/grpc-web.
bool IsGrpc(const http::RequestHead& head);
// Whether the content type is that of gRPC.
bool HasGrpcType(const http::Fields& fields);

// The status in the head or the trailers of an answer; absent if there is none.
std::optional<uint32_t> ReadGrpcStatus(const http::Fields& fields);

// The status that an answer of a proxy with this HTTP status means.
GrpcStatus GrpcStatusOf(int http_status);

// "100m" is 100 milliseconds: at most eight digits and H, M, S, m, u or n. Absent if it is invalid.
std::optional<base::Duration> ParseGrpcTimeout(std::string_view text);
// The longest text that is not more than `timeout`, in the finest unit in which it has at most
// eight digits. A timeout that is not positive is "0n".
std::string GrpcTimeout(base::Duration timeout);

// The timeout of a call; absent if it has none, or does not use gRPC.
std::optional<base::Duration> GrpcTimeoutOf(const http::RequestHead& head);
// Takes the time for which the call has waited from its timeout, if it has one.
void ShortenGrpcTimeout(base::Duration waited, http::RequestHead& head);

// Appends the text in the percent-encoding of grpc-message, which keeps printable ASCII except '%'.
void AppendGrpcMessage(std::string_view text, std::string& out);

}  // namespace headgate::proxy
