#include "headgate/client/zookeeper/presence.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "headgate/base/host_name.h"
#include "headgate/base/json.h"
#include "headgate/client/zookeeper/node_name.h"

namespace headgate::client::zookeeper {

std::string PresenceData(const PresenceInfo& info) {
  const auto seconds = static_cast<std::time_t>(info.started.ns / 1'000'000'000);
  std::string data = "{\"host\": ";
  base::AppendJsonString(base::HostName(), data);
  data += ", \"version\": ";
  base::AppendJsonString(info.version, data);
  data +=
      fmt::format(", \"started\": \"{:%FT%TZ}\", \"rules_generation\": {}, \"rules_fingerprint\": ",
                  fmt::gmtime(seconds), info.rules_generation);
  base::AppendJsonString(info.rules_fingerprint, data);
  return data + "}";
}

Presence::Presence(Client& client, net::EventLoop& loop, PresenceOptions options)
    : client_(client),
      loop_(loop),
      options_(std::move(options)),
      path_(Below(options_.directory, options_.name)),
      data_(options_.data),
      timer_(loop, [this] { Look(); }),
      write_timer_(loop, [this] { Look(); }) {}

void Presence::OnConnected(bool new_session) {
  if (new_session) {
    made_ = false;
    settled_at_ = loop_.Now() + options_.settle;
  }
  Look();
}

void Presence::OnWatch(const WatchEvent& event) {
  if (event.path == options_.directory) LookSoon();
}

void Presence::LookSoon() {
  if (!left_) timer_.SetAfter(options_.pause);
}

void Presence::Describe(std::string data) {
  data_ = std::move(data);
  WriteSoon();
}

void Presence::WriteSoon() {
  if (left_ || !made_) return;
  if (written_ != data_) {
    write_timer_.Set(std::max(write_at_, loop_.Now()));
  } else if (options_.clock) {
    write_timer_.Set(std::max(compare_at_, loop_.Now()));
  }
}

bool Presence::WriteIsDue() const {
  const base::BootTime now = loop_.Now();
  if (now < write_at_) return false;
  return written_ != data_ || (options_.clock && now >= compare_at_);
}

// The leader took the time between the question and the answer.
void Presence::Compare(base::Instant asked, const NodeStat& stat) const {
  const base::Duration waited = options_.clock() - asked;
  // The stated time is cut off to whole milliseconds.
  constexpr base::Duration kHalfMs = std::chrono::microseconds(500);
  const base::Duration ours(asked.ns + waited.count() / 2);
  const base::Duration leaders = base::Duration(stat.changed_at.ns) + kHalfMs;
  options_.on_offset(ours - leaders, waited / 2 + kHalfMs);
}

// Makes the next call, one at a time: makes the node, writes its data, or counts.
void Presence::Look() {
  if (left_ || !client_.connected()) return;
  if (busy_) {
    again_ = true;
    return;
  }
  busy_ = true;
  again_ = false;
  if (!made_) {
    Make();
  } else if (WriteIsDue()) {
    Write();
  } else {
    Count();
  }
}

void Presence::Make() {
  written_ = data_;
  write_at_ = compare_at_ = loop_.Now() + options_.write_pause;
  client_.Create(path_, data_, CreateMode::kEphemeral,
                 [this](const absl::StatusOr<Created>& made) { OnMade(made.status()); });
}

void Presence::Write() {
  write_at_ = loop_.Now() + options_.write_pause;
  compare_at_ = loop_.Now() + options_.clock_pause;
  const base::Instant asked = options_.clock ? options_.clock() : base::Instant{0};
  client_.Set(path_, data_, -1, [this, asked, data = data_](const absl::StatusOr<NodeStat>& stat) {
    if (stat.ok() && options_.clock) Compare(asked, *stat);
    OnWritten(data, stat.status());
  });
}

void Presence::OnWritten(const std::string& data, const absl::Status& status) {
  if (left_) return;
  if (absl::IsNotFound(status)) made_ = false;
  if (!status.ok()) return Fail(status);
  written_ = data;
  // Changes of the directory that came meanwhile are counted now.
  Count();
}

void Presence::OnMade(const absl::Status& status) {
  if (left_) return;
  if (status.ok()) {
    made_ = true;
    return Count();
  }
  if (absl::IsAlreadyExists(status)) return CheckOwner();
  if (!absl::IsNotFound(status)) return Fail(status);
  client_.CreateAll(options_.directory, [this](const absl::Status& above) {
    if (!above.ok()) return Fail(above);
    busy_ = false;
    Look();
  });
}

// The node may be ours: the answer to its creation was lost.
void Presence::CheckOwner() {
  client_.Exists(path_, Watch::kNo, [this](const absl::StatusOr<NodeStat>& stat) {
    if (!stat.ok()) return Fail(stat.status());
    if (stat->owner != client_.session_id()) return DeleteForeign(stat->version);
    made_ = true;
    written_.clear();
    Count();
  });
}

void Presence::DeleteForeign(int32_t version) {
  client_.Delete(path_, version, [this](const absl::Status& status) {
    if (!status.ok() && !absl::IsNotFound(status)) return Fail(status);
    busy_ = false;
    Look();
  });
}

void Presence::Count() {
  client_.List(options_.directory, Watch::kYes,
               [this](const absl::StatusOr<Children>& children) { OnCounted(children); });
}

void Presence::OnCounted(const absl::StatusOr<Children>& children) {
  if (!children.ok()) {
    if (absl::IsNotFound(children.status())) made_ = false;
    return Fail(children.status());
  }
  busy_ = false;
  Report("");
  const std::vector<std::string>& names = children->names;
  // If the node is missing, somebody has deleted it.
  made_ = std::find(names.begin(), names.end(), options_.name) != names.end();
  const auto counted = static_cast<uint32_t>(std::max<size_t>(names.size(), 1));
  const bool settled = loop_.Now() >= settled_at_;
  if (settled || counted > instances()) known_.store(counted, std::memory_order_relaxed);
  WriteSoon();
  if (!made_ || again_) return LookSoon();
  // Counts again when the number may fall.
  if (!settled && counted < instances()) timer_.Set(settled_at_);
}

void Presence::Fail(const absl::Status& status) {
  busy_ = false;
  // An ensemble that does not answer is not a refusal.
  if (!absl::IsUnavailable(status) && !absl::IsUnknown(status) && !absl::IsNotFound(status)) {
    errors_.Add();
    Report(std::string(status.message()));
  }
  LookSoon();
}

void Presence::Report(const std::string& error) {
  if (std::exchange(last_error_, error) != error && options_.on_error) options_.on_error(error);
}

void Presence::Leave(std::function<void()> done) {
  left_ = true;
  timer_.Cancel();
  write_timer_.Cancel();
  if (!std::exchange(made_, false)) return done();
  client_.Delete(path_, -1, [done = std::move(done)](const absl::Status& /*ignored*/) { done(); });
}

}  // namespace headgate::client::zookeeper
