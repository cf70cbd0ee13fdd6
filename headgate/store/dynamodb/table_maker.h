// Creates the table of a store: `headgate store create-table`.
//
//   DescribeTable ─ there is none ─► CreateTable ─► DescribeTable … until it is ACTIVE
//        │                                              │
//        └─ there is one: is its key right? ────────────┴─► its time to live, if it is not on
//
// It can be repeated. A table with another key is left alone.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "headgate/base/status.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/dynamodb/table_client.h"

namespace headgate::store::dynamodb {

struct TableMade {
  bool was_there = false;
  // Why the time to live is not on; empty if it is on.
  std::string without_expiry{};
};

class TableMaker {
 public:
  // FailedPrecondition: there is a table with another key. DeadlineExceeded: it does not become
  // active. Otherwise the statuses of TableClient.
  using Done = std::function<void(absl::StatusOr<TableMade> made)>;

  // All arguments must outlive this object. Calls `done` once, within `timeout`.
  TableMaker(TableClient& client, net::EventLoop& loop, base::Duration timeout, Done done);
  TableMaker(const TableMaker&) = delete;

  void Begin() { Describe(); }

 private:
  void Call(std::string_view action, std::string body,
            std::function<void(const absl::StatusOr<std::string>& body)> done);
  void Describe();
  void OnDescribed(const absl::StatusOr<std::string>& body);
  void Create();
  void LookAtExpiry();
  void TurnOnExpiry();
  // Ends successfully; `expiry` says whether the table's time to live is on.
  void FinishWith(const absl::Status& expiry);
  void Finish(absl::StatusOr<TableMade> made);

  TableClient& client_;
  net::EventLoop& loop_;
  const base::BootTime deadline_;
  Done done_;
  bool has_created_ = false;
  TableMade made_;
  net::Timer timer_;
};

}  // namespace headgate::store::dynamodb
