// Every scenario on a real server of DynamoDB.
#include "tests/dynamodb/timed_strict_store.h"
#include "tests/scenarios/strict_scenario.h"

namespace headgate::testing {
namespace scenario_test {

INSTANTIATE_TEST_SUITE_P(DynamoDb, StrictScenario, EveryScenario<dynamodb_test::TimedStrictStore>(),
                         NameOfStrictScenario);

}  // namespace scenario_test
}  // namespace headgate::testing
