// Objects that are used again: as many as were ever in use at once. Taking one allocates nothing
// once there are as many. Each keeps what its last user left in it, its memory above all. Not
// thread-safe.
#pragma once

#include <memory>
#include <vector>

namespace headgate::base {

template <typename T>
class Pool {
 public:
  T& Take() {
    if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<T>()).get());
    T& object = *free_.back();
    free_.pop_back();
    return object;
  }
  // `object` was taken from this pool, and is used no more.
  void Release(T& object) { free_.push_back(&object); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace headgate::base
