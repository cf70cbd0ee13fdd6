// Sends HG.CHECK, HG.REFUND and HG.RESET, as a Redis client of either protocol version.
#pragma once

#include "headgate/front/resp/session.h"
#include "headgate/wire/resp_reader.h"
#include "headgate/wire/resp_writer.h"
#include "tests/scenarios/front_driver.h"

namespace headgate::testing {

class RespDriver final : public FrontDriver {
 public:
  explicit RespDriver(wire::RespVersion version, const MakeSharedStore& make = {});

  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  absl::StatusOr<wire::RespValue> Call(std::initializer_list<std::string_view> words,
                                       base::Instant now);

  front::resp::Context context_;
  front::resp::RespSession session_;
};

}  // namespace headgate::testing
