// A view of one member across an array of structs, like std::span for whole elements. The caller
// can keep a batch as one array of structs while each layer sees only the members that it knows.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace headgate::base {

template <typename T>
class Strided {
 public:
  constexpr Strided() = default;
  // Views `count` elements, one every `stride` bytes.
  constexpr Strided(T* first, size_t count, size_t stride = sizeof(T))
      : first_(first), count_(count), stride_(stride) {}
  // Views all elements of a span, a vector or an array.
  template <typename Range>
  requires std::is_constructible_v<std::span<T>, Range &&> constexpr Strided(Range&& elements)
      : Strided(std::span<T>(elements).data(), std::span<T>(elements).size()) {}

  // Views this member of each struct.
  template <typename Struct, typename Member>
  requires std::is_convertible_v<Member*, T*>
  static Strided Of(std::span<Struct> structs, Member Struct::*member) {
    return structs.empty() ? Strided()
                           : Strided(&(structs.front().*member), structs.size(), sizeof(Struct));
  }

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T& operator[](size_t index) const { return *At(index); }
  Strided subspan(size_t from, size_t count) const { return {At(from), count, stride_}; }

 private:
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  T* At(size_t index) const {
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(first_) + index * stride_);
  }

  T* first_ = nullptr;
  size_t count_ = 0;
  size_t stride_ = sizeof(T);
};

}  // namespace headgate::base
