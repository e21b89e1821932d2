// cvt: between numbers, also half precision; saturating from floats to integers as PTX says.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "lanes.h"

namespace rf::ptx {
namespace {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

float to_float(Half h) {
  const int exponent = (h.bits >> 10) & 31, mantissa = h.bits & 1023;
  if (exponent == 31 && mantissa) return canonical(NAN);
  float magnitude = INFINITY;
  if (exponent == 0) magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  if (exponent > 0 && exponent < 31)
    magnitude = std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
  return h.bits & 0x8000 ? -magnitude : magnitude;
}
float to_float(BFloat b) {
  const uint32_t bits = static_cast<uint32_t>(b.bits) << 16;
  float v;
  memcpy(&v, &bits, 4);
  return canonical(v);
}

// To nearest even: in units of the last place the value is an integer after nearbyint; a carry out
// of the mantissa adds one to the exponent field, as it should.
Half to_half(float v) {
  if (v != v) return {0x7fff};
  const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  const double a = std::fabs(static_cast<double>(v));
  if (a >= 65520.0) return {static_cast<uint16_t>(sign | 0x7c00)};
  const int exponent = a > 0 ? std::max(std::ilogb(a), -14) : -14;
  const int units = static_cast<int>(std::nearbyint(std::ldexp(a, 10 - exponent)));
  return {static_cast<uint16_t>(sign | (((exponent + 14) << 10) + units))};
}
BFloat to_bfloat(float v) {
  if (v != v) return {0x7fff};
  uint32_t bits;
  memcpy(&bits, &v, 4);
  return {static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};
}

enum class Round { kNone, kNearest, kZero, kDown, kUp };  // to an integer

template <typename F>
F rounded(F v, Round r) {
  switch (r) {
    case Round::kNearest:
      return std::nearbyint(v);
    case Round::kZero:
      return std::trunc(v);
    case Round::kDown:
      return std::floor(v);
    case Round::kUp:
      return std::ceil(v);
    default:
      return v;
  }
}

template <typename D, typename S>
D to_integer(S v) {  // of a rounded float
  if (v != v) {
    const bool wide = sizeof(S) == 8 || sizeof(D) == 8;
    return wide ? static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1)) : D(0);
  }
  if (v < static_cast<S>(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  // max() + 1 is a power of two, exact in S; max() itself may not be.
  if (v >= std::ldexp(S(1), std::numeric_limits<D>::digits)) return std::numeric_limits<D>::max();
  return static_cast<D>(v);
}

template <typename D, typename S>
D clamped(S v) {
  using Big = __int128;
  return static_cast<D>(
      std::clamp<Big>(v, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
}

template <typename D, typename S, Round kRound>
D convert(S a, bool saturate) {
  constexpr bool from_float = std::is_floating_point_v<S>, to_float = std::is_floating_point_v<D>;
  if constexpr (from_float && to_float) {
    const D v = canonical(static_cast<D>(rounded(a, kRound)));
    return saturate ? (v > 0 ? std::min(v, D(1)) : D(0)) : v;
  } else if constexpr (from_float) {
    return to_integer<D>(rounded(a, kRound));
  } else if constexpr (to_float) {
    return static_cast<D>(a);
  } else {
    return saturate ? clamped<D>(a) : static_cast<D>(a);
  }
}

// A register may be wider than the type it holds (8 bits in a 16-bit register);
// then the value is extended.
template <typename D, typename S, Round kRound>
void run_convert(Warp& w, const Inst& i, uint32_t mask) {
  const int from = i.s[0].bytes, to = i.d[0].bytes;
  if (from == sizeof(S) && to == sizeof(D) && !i.saturate) {
    const S* a = w.in<S>(i.s[0]);
    write_lanes(w.out<D>(i.d[0]), mask, [=](int l) { return convert<D, S, kRound>(a[l], false); });
    return;
  }
  const uint8_t* a = w.in<uint8_t>(i.s[0]);
  uint8_t* d = w.out<uint8_t>(i.d[0]);
  for (int l = 0; l < kLanes; ++l) {
    if (!((mask >> l) & 1)) continue;
    S source;
    memcpy(&source, a + l * from, sizeof(S));
    const D value = convert<D, S, kRound>(source, i.saturate);
    if constexpr (std::is_integral_v<D>) {
      using Wide = std::conditional_t<std::is_signed_v<D>, int64_t, uint64_t>;
      const Wide extended = value;
      memcpy(d + l * to, &extended, to);
    } else {
      memcpy(d + l * to, &value, sizeof(D));
    }
  }
}

template <typename D, typename S>
Handler with_rounding(Round r) {
  if constexpr (std::is_floating_point_v<S>) {
    switch (r) {
      case Round::kNone:
        return std::is_floating_point_v<D> ? run_convert<D, S, Round::kNone> : Handler(nullptr);
      case Round::kNearest:
        return run_convert<D, S, Round::kNearest>;
      case Round::kZero:
        return run_convert<D, S, Round::kZero>;
      case Round::kDown:
        return run_convert<D, S, Round::kDown>;
      case Round::kUp:
        return run_convert<D, S, Round::kUp>;
    }
  }
  return r == Round::kNone ? run_convert<D, S, Round::kNone> : Handler(nullptr);
}

using All =
    Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float, double>;

template <typename D, typename... Ss>
Handler from(Type type, Round r, Types<Ss...>) {
  Handler found = nullptr;
  ((type == kTypeOf<Ss> ? void(found = with_rounding<D, Ss>(r)) : void()), ...);
  return found;
}
template <typename... Ds>
Handler between(Type to, Type source, Round r, Types<Ds...>) {
  Handler found = nullptr;
  ((to == kTypeOf<Ds> ? void(found = from<Ds>(source, r, All())) : void()), ...);
  return found;
}

template <typename D, typename S, D (*f)(S)>
void run_half(Warp& w, const Inst& i, uint32_t mask) {
  const S* a = w.in<S>(i.s[0]);
  write_lanes(w.out<D>(i.d[0]), mask, [=](int l) { return f(a[l]); });
}

Handler half_conversion(Type to, Type source) {
  if (source == Type::kF16 && to == Type::kF32) return run_half<float, Half, to_float>;
  if (source == Type::kBF16 && to == Type::kF32) return run_half<float, BFloat, to_float>;
  if (to == Type::kF16 && source == Type::kF32) return run_half<Half, float, to_half>;
  if (to == Type::kBF16 && source == Type::kF32) return run_half<BFloat, float, to_bfloat>;
  return nullptr;
}

}  // namespace

// ".rn" between floats, or from integers, is what the host does; ".rni" and its like round to an
// integer. Of a float made narrower only ".rn" is known.
Handler find_conversion(Inst& inst, const Opcode& opcode) {
  Round round = Round::kNone;
  Type to = Type::kNone;
  for (size_t i = 1; i + 1 < opcode.size(); ++i) {
    const std::string& s = opcode[i];
    if (s == "rni") {
      round = Round::kNearest;
    } else if (s == "rzi") {
      round = Round::kZero;
    } else if (s == "rmi") {
      round = Round::kDown;
    } else if (s == "rpi") {
      round = Round::kUp;
    } else if (s == "sat") {
      inst.saturate = true;
    } else if (type_named(s) != Type::kNone) {
      to = type_named(s);
    } else if (s != "rn") {
      return nullptr;
    }
  }
  const bool half =
      size_of(inst.type) == 2 && (inst.type == Type::kF16 || inst.type == Type::kBF16);
  if (half || to == Type::kF16 || to == Type::kBF16) {
    return inst.saturate || round != Round::kNone ? nullptr : half_conversion(to, inst.type);
  }
  return between(to, inst.type, round, All());
}

}  // namespace rf::ptx
