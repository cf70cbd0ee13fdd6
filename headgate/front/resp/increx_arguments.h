// The arguments of INCREX:
//
//   INCREX key [BYFLOAT number | BYINT integer] [LBOUND least] [UBOUND most] [SATURATE]
//              [EX seconds | PX ms | EXAT unix-seconds | PXAT unix-ms | PERSIST] [ENX]
//
// Options come in any order, each at most once.
#pragma once

#include "headgate/algorithm/counter.h"
#include "headgate/base/status.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// InvalidArgument, in the words of Redis without "ERR", if the command is wrong.
absl::StatusOr<algorithm::CounterChange> ReadIncrex(const wire::RespParser& command);

}  // namespace headgate::front::resp
