// Every scenario on a real ZooKeeper.
#include "tests/scenarios/strict_scenario.h"
#include "tests/zookeeper/timed_strict_store.h"

namespace headgate::testing {
namespace scenario_test {

INSTANTIATE_TEST_SUITE_P(ZooKeeper, StrictScenario,
                         EveryScenario<zookeeper_test::TimedStrictStore>(), NameOfStrictScenario);

}  // namespace scenario_test
}  // namespace headgate::testing
