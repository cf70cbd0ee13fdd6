// A store whose server is in this process: sends requests to the scripts in the Lua host and
// answers. It replaces the client and the network.
#pragma once

#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/shared_store.h"
#include "tests/redis/arithmetic_host.h"
#include "tests/redis/lua_host.h"

namespace headgate::redis_host {

struct LuaStore {
  store::LimitHandle Intern(const algorithm::LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }

  store::SharedAnswer Ask(const store::SharedRequest& request, base::Instant now) {
    if (auto answer = store::redis::BucketCall::AnswerWithoutStore(request)) return *answer;
    context.now = now;
    store::redis::BucketCall call(request, context);
    while (true) {
      std::vector<std::string_view> arguments;
      for (size_t i = 1; i < call.part_count(); ++i) arguments.push_back(call.Part(i));
      ++calls;
      if (auto answer =
              call.Read(host->Eval(keyspace, now, call.script().text, call.key(), arguments)))
        return *answer;
    }
  }

  LuaHost lua;
  ArithmeticHost arithmetic{lua};
  // The host that runs the scripts.
  ScriptHost* host = &lua;
  Keyspace keyspace;
  store::LimitTable limits;
  store::redis::CallContext context;
  int calls = 0;
};

}  // namespace headgate::redis_host
