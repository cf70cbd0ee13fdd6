// The requests that wait for a place, first come, first served. A request leaves the queue from any
// position without a search.
#pragma once

#include <cstddef>

#include "headgate/proxy/places.h"

namespace headgate::proxy {

class WaiterQueue {
 public:
  using Waiter = Places::Waiter;

  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }

  void Append(Waiter& waiter) {
    waiter.waits_ = true;
    waiter.next_ = nullptr;
    waiter.previous_ = last_;
    (last_ == nullptr ? first_ : last_->next_) = &waiter;
    last_ = &waiter;
    ++size_;
  }
  // Does nothing if it does not wait.
  void Remove(Waiter& waiter) {
    if (!waiter.waits_) return;
    waiter.waits_ = false;
    (waiter.previous_ == nullptr ? first_ : waiter.previous_->next_) = waiter.next_;
    (waiter.next_ == nullptr ? last_ : waiter.next_->previous_) = waiter.previous_;
    --size_;
  }
  Waiter& front() { return *first_; }
  Waiter& TakeFirst() {
    Waiter& waiter = *first_;
    Remove(waiter);
    return waiter;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace headgate::proxy
