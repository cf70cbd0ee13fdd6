// The answer of COMMAND DOCS, in the form of Redis 7, so that redis-cli shows the arguments of a
// command while one types.
#pragma once

#include <cstddef>
#include <string_view>

#include "headgate/front/resp/commands.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// Writes the map that describes the command.
void WriteDocs(const CommandSpec& spec, wire::RespWriter& reply);

}  // namespace headgate::front::resp
