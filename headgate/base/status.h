// Errors are values: an absl::Status at module borders, returned early. The macros have the shape
// of Abseil's own, which come with a later release than Debian 12 has.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define HEADGATE_RETURN_IF_ERROR(expression)                                \
  do {                                                                      \
    if (absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define HEADGATE_ASSIGN_OR_RETURN(target, expression) \
  HEADGATE_ASSIGN_OR_RETURN_(HEADGATE_CONCAT_(status_or_, __LINE__), target, expression)
#define HEADGATE_ASSIGN_OR_RETURN_(temporary, target, expression) \
  auto temporary = (expression);                                  \
  if (!temporary.ok()) return std::move(temporary).status();      \
  target = *std::move(temporary)
#define HEADGATE_CONCAT_(a, b) HEADGATE_CONCAT_2_(a, b)
#define HEADGATE_CONCAT_2_(a, b) a##b
