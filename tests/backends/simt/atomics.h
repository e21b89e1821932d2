// Atomics. The whole block runs on one OS thread, so a plain read-modify-write is atomic; functions
// of their own, uninstrumented, so that the race detector sees one atomic access instead of a read
// and a write.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace rf::simt {

void note_atomic(const void* address, size_t bytes);

template <typename T, typename F>
__attribute__((noinline, no_sanitize("thread"))) T read_modify_write(T* address, F update) {
  note_atomic(address, sizeof(T));
  const T old = *address;
  *address = update(old);
  return old;
}

// T of the pointer decides; the operand converts to it, as with CUDA's overloads.
template <typename T>
struct identity {
  using type = T;
};
template <typename T>
using operand = typename identity<T>::type;

template <typename T, typename... Allowed>
constexpr bool is_one_of = (std::is_same_v<T, Allowed> || ...);
template <typename T>
constexpr bool is_atomic_integer = is_one_of<T, int, unsigned, long long, unsigned long long>;

}  // namespace rf::simt

template <typename T>
T atomicAdd(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_one_of<T, int, unsigned, unsigned long long, float, double>,
                "no atomicAdd for this type");
  return rf::simt::read_modify_write(address, [=](T old) -> T {
    if constexpr (std::is_same_v<T, int>) {
      return static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value));  // wraps
    } else {
      return old + value;
    }
  });
}
template <typename T>
T atomicSub(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_one_of<T, int, unsigned>, "no atomicSub for this type");
  return rf::simt::read_modify_write(address, [=](T old) {
    return static_cast<T>(static_cast<unsigned>(old) - static_cast<unsigned>(value));
  });
}
template <typename T>
T atomicMin(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_atomic_integer<T>, "no atomicMin for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return std::min(old, value); });
}
template <typename T>
T atomicMax(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_atomic_integer<T>, "no atomicMax for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return std::max(old, value); });
}
template <typename T>
T atomicAnd(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_atomic_integer<T>, "no atomicAnd for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return old & value; });
}
template <typename T>
T atomicOr(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_atomic_integer<T>, "no atomicOr for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return old | value; });
}
template <typename T>
T atomicXor(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_atomic_integer<T>, "no atomicXor for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return old ^ value; });
}
template <typename T>
T atomicExch(T* address, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_one_of<T, int, unsigned, unsigned long long, float>,
                "no atomicExch for this type");
  return rf::simt::read_modify_write(address, [=](T) { return value; });
}
template <typename T>
T atomicCAS(T* address, rf::simt::operand<T> compare, rf::simt::operand<T> value) {
  static_assert(rf::simt::is_one_of<T, int, unsigned, unsigned long long, unsigned short>,
                "no atomicCAS for this type");
  return rf::simt::read_modify_write(address, [=](T old) { return old == compare ? value : old; });
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return rf::simt::read_modify_write(address,
                                     [=](unsigned old) { return old >= limit ? 0u : old + 1u; });
}
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return rf::simt::read_modify_write(
      address, [=](unsigned old) { return old == 0u || old > limit ? limit : old - 1u; });
}
