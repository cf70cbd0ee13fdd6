// A compare-and-set store on an event loop of its own, at the time that the test sets.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/store/cas/cas_store.h"
#include "headgate/store/cas/versioned_store_rig.h"

namespace headgate::cas_test {

class TimedCasStore {
 public:
  explicit TimedCasStore(store::LimitTable& limits, const store::cas::CasOptions& options = {}) {
    const store::cas::CasStore::Parts parts[] = {{.loop = loop_, .service = connection_}};
    stores_ = store::cas::CasStore::Make(
        parts, {.limits = limits, .clock = decisions_, .seed = 1, .options = options});
  }

  store::SharedStore& store() { return *stores_.front(); }
  void SetNow(base::Instant now) { clock_.Advance(now - decisions_.Now()); }
  bool Wait(const std::function<bool()>& done) {
    return loop_.RunUntil(done, std::chrono::seconds(5));
  }
  // Values that are not empty.
  uint64_t buckets() const {
    uint64_t count = 0;
    for (const auto& [name, value] : service_.values)
      count += !store::cas::ParseEnvelope(value.bytes)->bucket.empty();
    return count;
  }

 private:
  // Answers in a later turn.
  class Connection final : public store::cas::VersionedStore {
   public:
    Connection(store::cas::ServiceRig& service, net::EventLoop& loop)
        : service_(service), loop_(loop) {}

    void Get(std::string_view name, base::BootTime /*deadline*/, GetDone done) override {
      std::optional<store::cas::Versioned> found;
      const auto value = service_.values.find(std::string(name));
      if (value != service_.values.end()) found = value->second;
      loop_.Post([done = std::move(done), found] { done(found); });
    }
    void Put(const store::cas::PutRequest& request, PutDone done) override {
      const auto version =
          service_.Apply(std::string(request.name), std::string(*request.bytes), request.expected);
      loop_.Post([done = std::move(done), version] { done(version); });
    }

   private:
    store::cas::ServiceRig& service_;
    net::EventLoop& loop_;
  };

  base::ManualClock clock_;
  base::DisciplinedClock decisions_{clock_};
  net::EventLoop loop_{clock_};
  store::cas::ServiceRig service_{clock_};
  Connection connection_{service_, loop_};
  std::vector<std::unique_ptr<store::cas::CasStore>> stores_;
};

}  // namespace headgate::cas_test
