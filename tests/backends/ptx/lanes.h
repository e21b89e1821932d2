// Handlers from functions of one lane: Binary<Add>::run<float> adds the 32 lanes of a warp. Lanes
// outside `mask` keep their values.
#pragma once

#include <cstring>

#include "machine.h"

namespace rf::ptx {

template <typename D, typename Value>
inline void write_lanes(D* d, uint32_t mask, Value value) {
  D result[kLanes];
  for (int l = 0; l < kLanes; ++l) result[l] = value(l);
  if (mask == kAllLanes) {
    memcpy(d, result, sizeof(result));
  } else {
    for (int l = 0; l < kLanes; ++l) d[l] = (mask >> l) & 1 ? result[l] : d[l];
  }
}

template <typename F>
struct Unary {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T* a = w.in<T>(i.s[0]);
    using D = decltype(F()(T()));
    write_lanes(w.out<D>(i.d[0]), mask, [=](int l) { return F()(a[l]); });
  }
};

template <typename F>
struct Binary {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T *a = w.in<T>(i.s[0]), *b = w.in<T>(i.s[1]);
    using D = decltype(F()(T(), T()));
    write_lanes(w.out<D>(i.d[0]), mask, [=](int l) { return F()(a[l], b[l]); });
  }
};

template <typename F>
struct Ternary {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T *a = w.in<T>(i.s[0]), *b = w.in<T>(i.s[1]);
    using D = decltype(F()(T(), T(), T()));
    const D* c = w.in<D>(i.s[2]);
    write_lanes(w.out<D>(i.d[0]), mask, [=](int l) { return F()(a[l], b[l], c[l]); });
  }
};

template <typename F>
struct Shift {  // the second source is 32 bits whatever the type
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T* a = w.in<T>(i.s[0]);
    const uint32_t* b = w.in<uint32_t>(i.s[1]);
    write_lanes(w.out<T>(i.d[0]), mask, [=](int l) { return F()(a[l], b[l]); });
  }
};

// ---- choosing the instance for a PTX type

template <typename... Ts>
struct Types {};
using Integers = Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
using Signed = Types<int16_t, int32_t, int64_t>;
using Words = Types<uint32_t, int32_t, uint64_t, int64_t>;
using Floats = Types<float, double>;
using Numbers = Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float, double>;

template <typename T>
constexpr Type kTypeOf = Type::kNone;
template <>
inline constexpr Type kTypeOf<uint8_t> = Type::kU8;
template <>
inline constexpr Type kTypeOf<int8_t> = Type::kS8;
template <>
inline constexpr Type kTypeOf<uint16_t> = Type::kU16;
template <>
inline constexpr Type kTypeOf<int16_t> = Type::kS16;
template <>
inline constexpr Type kTypeOf<uint32_t> = Type::kU32;
template <>
inline constexpr Type kTypeOf<int32_t> = Type::kS32;
template <>
inline constexpr Type kTypeOf<uint64_t> = Type::kU64;
template <>
inline constexpr Type kTypeOf<int64_t> = Type::kS64;
template <>
inline constexpr Type kTypeOf<float> = Type::kF32;
template <>
inline constexpr Type kTypeOf<double> = Type::kF64;

// Null if Run has no instance for the type.
template <typename Run, typename... Ts>
Handler among(Type type, Types<Ts...>) {
  Handler found = nullptr;
  ((type == kTypeOf<Ts> ? void(found = &Run::template run<Ts>) : void()), ...);
  return found;
}
template <typename Run, typename List>
Handler pick(Type type) {
  return among<Run>(type, List());
}
using Pick = Handler (*)(Type);

// ---- the families of instructions; each gives null for what it does not know

using Opcode = std::vector<std::string>;
Handler find_arithmetic(const std::string& name, Type type);  // "mul.wide"
Handler find_comparison(const Opcode& opcode, Type type);     // setp
Handler find_conversion(Inst& inst, const Opcode& opcode);    // cvt
Handler find_move(const std::string& name, const Inst& inst, const Opcode& opcode);
Handler find_access(Inst& inst, const Opcode& opcode);      // ld, st, atom, red
Handler find_collective(Inst& inst, const Opcode& opcode);  // shfl, vote, redux, match, bar.warp

// ---- NaN: float32 arithmetic makes the one that NVIDIA GPUs make

inline float canonical(float v) {
  const uint32_t bits = 0x7fffffffu;
  float nan;
  memcpy(&nan, &bits, 4);
  return v != v ? nan : v;
}
inline double canonical(double v) { return v; }

}  // namespace rf::ptx
