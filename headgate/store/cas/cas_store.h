// The shared store of one process over a service that can only compare and set: one object for each
// event loop.
//
// Each key belongs to one loop of the process, whichever loops ask for it. A request goes to the
// loop that owns its key, and its answer comes back. So all requests of the process for one key
// share rounds (key_exchange.h), and the process never competes with itself.
//
//   loop 0   Ask ──┐                 ┌── done
//   loop 1   Ask ──┼── KeyOwner ─────┼── done     one get and one put for all of them
//   loop 2   Ask ──┘   (on loop 1)   └── done
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headgate/net/event_loop.h"
#include "headgate/store/cas/key_owner.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store_counters.h"

namespace headgate::store::cas {

class CasStore final : public SharedStore {
 public:
  struct Parts {
    net::EventLoop& loop;
    VersionedStore& service;
    // As CasOptions::on_damaged, for this loop.
    std::function<void()> on_damaged{};
  };
  struct Context {
    LimitTable& limits;
    // The time of decisions: the wall clock of this machine.
    const base::DisciplinedClock& clock;
    // Random: differs between processes, and between runs of one.
    uint64_t seed;
    // The number of instances; from any thread. Null: there is only this one.
    std::function<uint32_t()> instances{};
    CasOptions options{};
  };

  // The stores of a process, one for each of `parts`. Make them before the loops run and destroy
  // them after the loops have ended; the parts and the references of the context must outlive them.
  static std::vector<std::unique_ptr<CasStore>> Make(std::span<const Parts> parts,
                                                     const Context& context);

  void Ask(const SharedRequest& request, Done done) override;
  void AskPermits(const SharedPermits& request, PermitsDone done) override;
  base::BootTime Now() const override { return loop_.Now(); }
  uint32_t instances() const override { return context_.instances ? context_.instances() : 1; }
  LimitTable& limits() override { return context_.limits; }

  // Everything counted about the keys of this loop. From any thread.
  const CasCounters& counters() const { return owner_.counters(); }
  StoreCounters ReadCounters() const;

 private:
  // Items from other loops for this one. The loop is woken for the first item in an empty box.
  template <typename Item>
  class Mailbox {
   public:
    // Returns whether the box was empty.
    bool Put(Item item) {
      const std::lock_guard<std::mutex> lock(mutex_);
      items_.push_back(std::move(item));
      return items_.size() == 1;
    }
    std::vector<Item> TakeAll() {
      const std::lock_guard<std::mutex> lock(mutex_);
      return std::exchange(items_, {});
    }

   private:
    std::mutex mutex_;
    std::vector<Item> items_;  // guarded by mutex_
  };
  struct Question {
    std::string name;
    std::unique_ptr<WaitingRequest> request;
  };
  struct Reply {
    SharedAnswer answer;
    Done done;
  };
  struct PermitsReply {
    absl::StatusOr<permit::Answer> answer;
    PermitsDone done;
  };

  CasStore(const Parts& parts, const Context& context, uint64_t writer_id);
  static CasOptions OptionsOf(const Parts& parts, const Context& context);

  CasStore& OwnerOf(std::string_view name);
  void AskOwner(CasStore& owner, std::string_view name, std::unique_ptr<WaitingRequest> request);
  void AskHere(std::string_view name, std::unique_ptr<WaitingRequest> request);
  void TakeQuestions();
  void TakeReplies();
  void TakePermitsReplies();
  void SetTimer();

  net::EventLoop& loop_;
  const Context context_;
  std::vector<CasStore*> all_;
  KeyOwner owner_;
  Mailbox<Question> questions_;
  Mailbox<Reply> replies_;
  Mailbox<PermitsReply> permits_replies_;
  net::EventLoop::Hook end_of_turn_;
  net::Timer timer_;
};

}  // namespace headgate::store::cas
