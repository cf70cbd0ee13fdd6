#include "headgate/access/user_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::access {
namespace user_table_test {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHash = "$scrypt$ln=4,r=1,p=1$c2FsdA$" + std::string(43, 'A');

std::string ErrorOf(const std::string& text) {
  const auto table = ParseUsers(text);
  return table.ok() ? "no error" : std::string(table.status().message());
}

TEST(UserTable, ReadsUsersAndWhoHasNotLoggedIn) {
  const auto table = ParseUsers("# who may do what\n\nann  check,refund\t" + kHash +
                                "  # Ann\r\nops admin " + kHash + "\n* check -\n");
  ASSERT_TRUE(table.ok()) << table.status();
  ASSERT_EQ(table->users.size(), 2u);
  const Rights ann = table->users.at("ann").rights;
  EXPECT_TRUE(ann.Has(Right::kCheck) && ann.Has(Right::kRefund));
  EXPECT_FALSE(ann.Has(Right::kRead) || ann.Has(Right::kAdmin));
  const Rights ops = table->users.at("ops").rights;
  EXPECT_TRUE(ops.Has(Right::kCheck) && ops.Has(Right::kRefund) && ops.Has(Right::kRead));
  EXPECT_EQ(table->anonymous, Rights::Of(Right::kCheck));
}

TEST(UserTable, WithoutALineForThemClientsWithoutALoginMayDoNothing) {
  const auto table = ParseUsers("ann check " + kHash);
  ASSERT_TRUE(table.ok());
  EXPECT_TRUE(table->anonymous.empty());
}

TEST(UserTable, AnEmptyFileIsAMistake) {
  EXPECT_EQ(ErrorOf(""), "the file names no users");
  EXPECT_EQ(ErrorOf("# later\n"), "the file names no users");
  EXPECT_TRUE(ParseUsers("* check -").ok());
}

TEST(UserTable, NamesEveryWrongLineAndNoSecret) {
  const std::string error = ErrorOf("ann check\nbob chek " + kHash + "\ncarl check hunter2\n");
  EXPECT_THAT(error, HasSubstr("line 1: a line has a name, rights and the hash of a password"));
  EXPECT_THAT(error, HasSubstr("line 2: 'chek' is not a right: check, refund, read or admin"));
  EXPECT_THAT(error, HasSubstr("line 3: it is not a hash of `headgate hash-password`"));
  EXPECT_THAT(error, Not(HasSubstr("hunter2")));
}

TEST(UserTable, RefusesWhatIsStatedTwiceOrCannotBeSent) {
  EXPECT_THAT(ErrorOf("a check " + kHash + "\na admin " + kHash), HasSubstr("'a' is stated twice"));
  EXPECT_THAT(ErrorOf("* check -\n* admin -\n"), HasSubstr("stated twice"));
  EXPECT_THAT(ErrorOf("* check " + kHash), HasSubstr("write -"));
  EXPECT_THAT(ErrorOf("a:b check " + kHash), HasSubstr("colons"));
  EXPECT_THAT(ErrorOf("\xc3\xa4 check " + kHash), HasSubstr("ASCII"));
  EXPECT_EQ(ErrorOf(std::string(128, 'n') + " check " + kHash), "no error");
  EXPECT_THAT(ErrorOf(std::string(129, 'n') + " check " + kHash), HasSubstr("128"));
}

TEST(UserTable, HasABound) {
  std::string text;
  for (size_t i = 0; i < UserTable::kUsersMax; ++i)
    text += "u" + std::to_string(i) + " check " + kHash + "\n";
  EXPECT_EQ(ErrorOf(text), "no error");
  EXPECT_THAT(ErrorOf(text + "one-more check " + kHash), HasSubstr("more than 10000 users"));
}

std::string HashOfCost(int log_n) {
  return "$scrypt$ln=" + std::to_string(log_n) + ",r=1,p=1$c2FsdA$" + std::string(43, 'A');
}

// Else the time of a login tells who exists, or whose hash is old.
TEST(UserTable, ALoginComputesHashesOfEveryCostWhoeverLogsIn) {
  const auto table = ParseUsers("ann check " + HashOfCost(4) + "\nben check " + HashOfCost(4) +
                                "\nold check " + HashOfCost(3));
  ASSERT_TRUE(table.ok()) << table.status();
  const std::vector<PasswordHash> costs = CostsOf(*table);
  const auto computed_for = [&](const PasswordHash* own) {
    std::vector<uint32_t> work;
    for (const PasswordHash& hash : HashesBeside(own, costs)) work.push_back(hash.log_n);
    if (own != nullptr) work.push_back(own->log_n);
    return work;
  };
  using ::testing::UnorderedElementsAre;
  for (const char* const name : {"ann", "ben", "old"})
    EXPECT_THAT(computed_for(&table->users.at(name).password), UnorderedElementsAre(3u, 4u));
  EXPECT_THAT(computed_for(nullptr), UnorderedElementsAre(3u, 4u));
}

TEST(UserTable, WithoutUsersALoginTakesTheTimeOfANewHash) {
  const auto others = HashesBeside(nullptr, CostsOf(UserTable()));
  ASSERT_EQ(others.size(), 1u);
  EXPECT_TRUE(HaveSameCost(others.front(), DefaultCost()));
}

TEST(UserTable, HasFewCosts) {
  std::string text;
  for (int log_n = 1; log_n <= 4; ++log_n)
    text += "u" + std::to_string(log_n) + " check " + HashOfCost(log_n) + "\n";
  EXPECT_EQ(ErrorOf(text), "no error");
  EXPECT_THAT(ErrorOf(text + "more check " + HashOfCost(5)), HasSubstr("5 different costs"));
}

}  // namespace user_table_test
}  // namespace headgate::access
