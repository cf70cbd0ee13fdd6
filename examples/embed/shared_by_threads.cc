// One limiter for many threads: together they never pass more than the limit, however they race.
// Costs, several entries, a refund, and rules that change while the threads run.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "headgate/library/limiter.h"

int main() {
  auto made = headgate::Limiter::Make(
      {.rules = {"api_key,path=/search: 1000/hour fixed_window first_hit"}});
  if (!made.ok()) return 1;
  headgate::Limiter& limiter = *made;
  const headgate::rule::Entry entries[] = {{"api_key", "ann"}, {"path", "/search"}};

  std::atomic<int> passed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) {
        if (limiter.Check(entries)) ++passed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d of 4000 passed\n", passed.load());

  if (!limiter.Refund(entries, 10).ok()) return 1;
  std::printf("%d left after a refund\n", static_cast<int>(limiter.Peek(entries, 0).remaining));
  if (!limiter.SetRules({"api_key,path=/search: 2000/hour fixed_window first_hit"}).ok()) return 1;
  std::printf("%s\n", limiter.Check(entries, 500) ? "500 more pass under the new rule"
                                                  : "the new rule denies");
  return 0;
}
