#include "headgate/front/resp/command_docs.h"

#include <array>
#include <span>

namespace headgate::front::resp {
namespace {

using wire::RespWriter;

// An argument, in the terms of https://redis.io/docs/latest/commands/command-docs/.
struct ArgumentDoc {
  std::string_view name;
  std::string_view type;  // a block and a oneof have `parts`
  std::string_view token{};
  bool optional = false;
  bool multiple = false;
  std::span<const ArgumentDoc> parts{};
};

struct CommandDoc {
  Verb verb;
  std::string_view summary;
  std::span<const ArgumentDoc> arguments{};
};

constexpr std::array kThrottle{
    ArgumentDoc{.name = "key", .type = "key"},
    ArgumentDoc{.name = "max_burst", .type = "integer"},
    ArgumentDoc{.name = "count_per_period", .type = "integer"},
    ArgumentDoc{.name = "period_seconds", .type = "integer"},
    ArgumentDoc{.name = "quantity", .type = "integer", .optional = true},
};
constexpr std::array kGcra{
    ArgumentDoc{.name = "key", .type = "key"},
    ArgumentDoc{.name = "max_burst", .type = "integer"},
    ArgumentDoc{.name = "tokens_per_period", .type = "integer"},
    ArgumentDoc{.name = "period", .type = "double"},
    ArgumentDoc{.name = "count", .type = "integer", .token = "TOKENS", .optional = true},
};
constexpr std::array kBucket{
    ArgumentDoc{.name = "key", .type = "key"},
    ArgumentDoc{.name = "max_burst", .type = "integer"},
    ArgumentDoc{.name = "count_per_period", .type = "integer"},
    ArgumentDoc{.name = "period_seconds", .type = "integer"},
    ArgumentDoc{.name = "quantity", .type = "integer"},
};
constexpr std::array kBuckets{
    ArgumentDoc{.name = "bucket", .type = "block", .multiple = true, .parts = kBucket},
};
constexpr std::array kIncrement{
    ArgumentDoc{.name = "float", .type = "double", .token = "BYFLOAT"},
    ArgumentDoc{.name = "integer", .type = "integer", .token = "BYINT"},
};
constexpr std::array kExpiration{
    ArgumentDoc{.name = "seconds", .type = "integer", .token = "EX"},
    ArgumentDoc{.name = "milliseconds", .type = "integer", .token = "PX"},
    ArgumentDoc{.name = "unix_time_seconds", .type = "unix-time", .token = "EXAT"},
    ArgumentDoc{.name = "unix_time_milliseconds", .type = "unix-time", .token = "PXAT"},
    ArgumentDoc{.name = "persist", .type = "pure-token", .token = "PERSIST"},
};
constexpr std::array kIncrEx{
    ArgumentDoc{.name = "key", .type = "key"},
    ArgumentDoc{.name = "increment", .type = "oneof", .optional = true, .parts = kIncrement},
    ArgumentDoc{.name = "lowerbound", .type = "string", .token = "LBOUND", .optional = true},
    ArgumentDoc{.name = "upperbound", .type = "string", .token = "UBOUND", .optional = true},
    ArgumentDoc{.name = "saturate", .type = "pure-token", .token = "SATURATE", .optional = true},
    ArgumentDoc{.name = "expiration", .type = "oneof", .optional = true, .parts = kExpiration},
    ArgumentDoc{.name = "enx", .type = "pure-token", .token = "ENX", .optional = true},
};
constexpr std::array kEntry{
    ArgumentDoc{.name = "key", .type = "string"},
    ArgumentDoc{.name = "value", .type = "string"},
};
constexpr std::array kDescriptor{
    ArgumentDoc{.name = "count", .type = "integer", .token = "ENTRIES"},
    ArgumentDoc{.name = "entry", .type = "block", .multiple = true, .parts = kEntry},
};
constexpr std::array kCheck{
    ArgumentDoc{.name = "domain", .type = "string"},
    ArgumentDoc{.name = "cost", .type = "integer", .token = "COST", .optional = true},
    ArgumentDoc{.name = "descriptor", .type = "block", .multiple = true, .parts = kDescriptor},
};
constexpr std::array kRefund{
    ArgumentDoc{.name = "domain", .type = "string"},
    ArgumentDoc{.name = "cost", .type = "integer", .token = "COST", .optional = true},
    ArgumentDoc{.name = "id", .type = "string", .token = "ID", .optional = true},
    ArgumentDoc{.name = "descriptor", .type = "block", .multiple = true, .parts = kDescriptor},
};
constexpr std::array kAcquire{
    ArgumentDoc{.name = "domain", .type = "string"},
    ArgumentDoc{.name = "cost", .type = "integer", .token = "COST", .optional = true},
    ArgumentDoc{.name = "id", .type = "string", .token = "ID", .optional = true},
    ArgumentDoc{.name = "milliseconds", .type = "integer", .token = "PX", .optional = true},
    ArgumentDoc{.name = "descriptor", .type = "block", .multiple = true, .parts = kDescriptor},
};
constexpr std::array kRelease{
    ArgumentDoc{.name = "domain", .type = "string"},
    ArgumentDoc{.name = "id", .type = "string", .token = "ID"},
    ArgumentDoc{.name = "descriptor", .type = "block", .multiple = true, .parts = kDescriptor},
};
constexpr std::array kReset{
    ArgumentDoc{.name = "domain", .type = "string"},
    ArgumentDoc{.name = "descriptor", .type = "block", .multiple = true, .parts = kDescriptor},
};
constexpr std::array kKey{ArgumentDoc{.name = "key", .type = "key"}};
constexpr std::array kKeys{ArgumentDoc{.name = "key", .type = "key", .multiple = true}};

constexpr std::array kDocs{
    CommandDoc{Verb::kThrottle, "Takes from a token bucket, with the limit in the command",
               kThrottle},
    CommandDoc{Verb::kGcra, "Like CL.THROTTLE, with a period in fractions of a second", kGcra},
    CommandDoc{Verb::kHgCheckM, "Takes from several token buckets, or from none of them", kBuckets},
    CommandDoc{Verb::kIncrEx, "Increments a counter within bounds, and sets its expiry", kIncrEx},
    CommandDoc{Verb::kHgCheck, "Takes from the limits of the rules that match", kCheck},
    CommandDoc{Verb::kHgPeek, "Answers like HG.CHECK and takes nothing", kCheck},
    CommandDoc{Verb::kHgRefund, "Gives back what HG.CHECK took", kRefund},
    CommandDoc{Verb::kHgAcquire,
               "Takes a permit of the rules that limit concurrency, and the rest like HG.CHECK",
               kAcquire},
    CommandDoc{Verb::kHgRelease, "Gives back the permit of an id", kRelease},
    CommandDoc{Verb::kHgReset, "Makes buckets as if they were never used", kReset},
    CommandDoc{Verb::kDel, "Removes counters, and resets buckets of CL.THROTTLE and GCRA", kKeys},
    CommandDoc{Verb::kExists,
               "Counts counters, and buckets of CL.THROTTLE and GCRA that are not full", kKeys},
    CommandDoc{Verb::kTtl, "Seconds until a counter expires, or a bucket of CL.THROTTLE is full",
               kKey},
    CommandDoc{Verb::kPttl,
               "Milliseconds until a counter expires, or a bucket of CL.THROTTLE is full", kKey},
    CommandDoc{Verb::kPing, "Answers PONG, or the message"},
    CommandDoc{Verb::kEcho, "Answers the message"},
    CommandDoc{Verb::kHello, "Switches to a version of the protocol"},
    CommandDoc{Verb::kAuth, "Logs in"},
    CommandDoc{Verb::kSelect, "Selects the only database"},
    CommandDoc{Verb::kInfo, "Describes the server"},
    CommandDoc{Verb::kClient, "Describes connections"},
    CommandDoc{Verb::kCommand, "Describes commands"},
    CommandDoc{Verb::kConfig, "Reads settings"},
    CommandDoc{Verb::kTime, "The clock that decisions use"},
    CommandDoc{Verb::kDbSize, "Counts the buckets in this process's memory"},
    CommandDoc{Verb::kRole, "Answers that this is a primary"},
    CommandDoc{Verb::kEval, "Runs a script of one CL.THROTTLE or GCRA"},
    CommandDoc{Verb::kEvalSha, "Runs a script that was sent before"},
    CommandDoc{Verb::kScript, "Loads and forgets scripts"},
    CommandDoc{Verb::kMulti, "Begins a transaction"},
    CommandDoc{Verb::kExec, "Executes the transaction"},
    CommandDoc{Verb::kDiscard, "Discards the transaction"},
    CommandDoc{Verb::kReset, "Restores the initial state of the connection"},
    CommandDoc{Verb::kQuit, "Closes the connection"},
};

void WriteText(std::string_view name, std::string_view value, RespWriter& reply) {
  reply.Bulk(name);
  reply.Bulk(value);
}

void WriteArguments(std::span<const ArgumentDoc> arguments, RespWriter& reply) {
  reply.Bulk("arguments");
  reply.Array(arguments.size());
  for (const ArgumentDoc& argument : arguments) {
    const auto flags = static_cast<size_t>(argument.optional) + (argument.multiple ? 1 : 0);
    reply.Map(2 + size_t{!argument.token.empty()} + size_t{flags > 0} +
              size_t{!argument.parts.empty()});
    WriteText("name", argument.name, reply);
    WriteText("type", argument.type, reply);
    if (!argument.token.empty()) WriteText("token", argument.token, reply);
    if (flags > 0) {
      reply.Bulk("flags");
      reply.Array(flags);
      if (argument.optional) reply.Simple("optional");
      if (argument.multiple) reply.Simple("multiple");
    }
    if (!argument.parts.empty()) WriteArguments(argument.parts, reply);
  }
}

}  // namespace

void WriteDocs(const CommandSpec& spec, RespWriter& reply) {
  for (const CommandDoc& doc : kDocs) {
    if (doc.verb != spec.verb) continue;
    reply.Map(2 + size_t{!doc.arguments.empty()});
    WriteText("summary", doc.summary, reply);
    // The group of commands that are not Redis's own.
    WriteText("group", "module", reply);
    if (!doc.arguments.empty()) WriteArguments(doc.arguments, reply);
    return;
  }
  reply.Map(0);
}

}  // namespace headgate::front::resp
