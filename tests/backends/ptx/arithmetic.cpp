// Arithmetic, shifts and bits. Rounding is the host's round-to-nearest-even, which is what .rn
// means; nothing is fused but fma.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <unordered_map>

#include "lanes.h"

namespace rf::ptx {
namespace {

template <typename T>
constexpr bool kFloat = std::is_floating_point_v<T>;
template <typename T>
T wrap(uint64_t v) {  // integers wrap, also those too small for C++ to compute in
  return static_cast<T>(v);
}
template <typename T>
uint64_t wide(T v) {
  return static_cast<uint64_t>(v);
}
template <typename T>
using Double =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// clang-format off: one line each
struct Add { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) return canonical(a + b); else return wrap<T>(wide(a) + wide(b)); } };
struct Sub { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) return canonical(a - b); else return wrap<T>(wide(a) - wide(b)); } };
struct Mul { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) return canonical(a * b); else return wrap<T>(wide(a) * wide(b)); } };
struct MulWide { template <typename T> Double<T> operator()(T a, T b) const {
  return static_cast<Double<T>>(a) * static_cast<Double<T>>(b); } };
struct MulHi { template <typename T> T operator()(T a, T b) const {
  using Big = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return static_cast<T>((static_cast<Big>(a) * b) >> (8 * sizeof(T))); } };
struct MadLo { template <typename T> T operator()(T a, T b, T c) const { return Add()(Mul()(a, b), c); } };
struct MadHi { template <typename T> T operator()(T a, T b, T c) const { return Add()(MulHi()(a, b), c); } };
struct MadWide { template <typename T> Double<T> operator()(T a, T b, Double<T> c) const { return Add()(MulWide()(a, b), c); } };
struct Fma { template <typename T> T operator()(T a, T b, T c) const { return canonical(std::fma(a, b, c)); } };
struct Div { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) return canonical(a / b);
  else if (b == 0) return wrap<T>(~uint64_t{0});  // all ones, as on the hardware; PTX leaves it open
  else if (std::is_signed_v<T> && b == T(-1)) return wrap<T>(uint64_t{0} - wide(a));
  else return static_cast<T>(a / b); } };
struct Rem { template <typename T> T operator()(T a, T b) const {
  if (b == 0) return a;
  if (std::is_signed_v<T> && b == T(-1)) return 0;
  return static_cast<T>(a % b); } };
struct Min { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) {
    if (a != a) return canonical(b);
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? a : b;
  }
  return a < b ? a : b; } };
struct Max { template <typename T> T operator()(T a, T b) const {
  if constexpr (kFloat<T>) {
    if (a != a) return canonical(b);
    if (b != b) return a;
    if (a == b) return std::signbit(a) ? b : a;
  }
  return a > b ? a : b; } };
struct MinNan { template <typename T> T operator()(T a, T b) const { return a != a || b != b ? canonical(a + b) : Min()(a, b); } };
struct MaxNan { template <typename T> T operator()(T a, T b) const { return a != a || b != b ? canonical(a + b) : Max()(a, b); } };
struct Negate { template <typename T> T operator()(T a) const {
  if constexpr (kFloat<T>) return -a; else return wrap<T>(uint64_t{0} - wide(a)); } };
struct Absolute { template <typename T> T operator()(T a) const {
  if constexpr (kFloat<T>) return std::fabs(a); else return a < 0 ? wrap<T>(uint64_t{0} - wide(a)) : a; } };
struct AbsoluteDifference { template <typename T> T operator()(T a, T b, T c) const {
  return Add()(a < b ? Sub()(b, a) : Sub()(a, b), c); } };
struct Sqrt { template <typename T> T operator()(T a) const { return canonical(std::sqrt(a)); } };
struct Reciprocal { template <typename T> T operator()(T a) const { return canonical(T(1) / a); } };
struct ReciprocalSqrt { template <typename T> T operator()(T a) const { return canonical(static_cast<T>(1.0L / std::sqrt(static_cast<long double>(a)))); } };
struct Exp2 { template <typename T> T operator()(T a) const { return canonical(static_cast<T>(std::exp2(static_cast<double>(a)))); } };
struct Log2 { template <typename T> T operator()(T a) const { return canonical(static_cast<T>(std::log2(static_cast<double>(a)))); } };
struct Sine { template <typename T> T operator()(T a) const { return canonical(static_cast<T>(std::sin(static_cast<double>(a)))); } };
struct Cosine { template <typename T> T operator()(T a) const { return canonical(static_cast<T>(std::cos(static_cast<double>(a)))); } };
struct CopySign { template <typename T> T operator()(T a, T b) const { return std::copysign(b, a); } };

struct And { template <typename T> T operator()(T a, T b) const { return a & b; } };
struct Or { template <typename T> T operator()(T a, T b) const { return a | b; } };
struct Xor { template <typename T> T operator()(T a, T b) const { return a ^ b; } };
struct Not { template <typename T> T operator()(T a) const { return static_cast<T>(~a); } };
struct ShiftLeft { template <typename T> T operator()(T a, uint32_t n) const {
  return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(wide(a) << n); } };
struct ShiftRight { template <typename T> T operator()(T a, uint32_t n) const {  // arithmetic if T is signed
  if (n >= 8 * sizeof(T)) return std::is_signed_v<T> && a < 0 ? T(-1) : T(0);
  return static_cast<T>(a >> n); } };
struct LeadingZeros { template <typename T> uint32_t operator()(T a) const {
  if (a == 0) return 8 * sizeof(T);
  return sizeof(T) == 8 ? __builtin_clzll(a) : __builtin_clz(static_cast<uint32_t>(a)); } };
struct PopulationCount { template <typename T> uint32_t operator()(T a) const { return __builtin_popcountll(a); } };
struct Reverse { template <typename T> T operator()(T a) const {
  T r = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) r |= ((a >> i) & 1) << (8 * sizeof(T) - 1 - i);
  return r; } };
struct HighestBit { template <typename T> uint32_t operator()(T a) const {  // bfind
  if (std::is_signed_v<T> && a < 0) a = static_cast<T>(~a);
  return a == 0 ? 0xffffffffu : 63u - static_cast<uint32_t>(__builtin_clzll(static_cast<uint64_t>(a))); } };
template <bool kLeft, bool kWrap>
struct Funnel { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {  // shf d, low, high, n
  const uint32_t n = kWrap ? c & 31 : std::min(c, 32u);
  const uint64_t both = a | static_cast<uint64_t>(b) << 32;
  return static_cast<uint32_t>(kLeft ? (both << n) >> 32 : both >> n); } };
template <typename ElementA, typename ElementB>
struct DotBytes { uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
  for (int k = 0; k < 4; ++k) c += static_cast<uint32_t>(int{static_cast<ElementA>(a >> (8 * k))} * int{static_cast<ElementB>(b >> (8 * k))});
  return c; } };
// clang-format on

using W32 = Types<uint32_t>;
using S32 = Types<int32_t>;
using Unsigned = Types<uint32_t, uint64_t>;
using F32 = Types<float>;
using Halves = Types<uint16_t, int16_t, uint32_t, int32_t>;

// Modifiers that change nothing here (.rn) are left out of the names. Those of .approx are rounded
// rightly, where hardware may be off by an ulp or two.
const std::unordered_map<std::string, Pick>& table() {
  static const auto& made = *new std::unordered_map<std::string, Pick>{
      {"add", pick<Binary<Add>, Numbers>},
      {"sub", pick<Binary<Sub>, Numbers>},
      {"mul", pick<Binary<Mul>, Floats>},
      {"mul.lo", pick<Binary<Mul>, Integers>},
      {"mul.hi", pick<Binary<MulHi>, Integers>},
      {"mul.wide", pick<Binary<MulWide>, Halves>},
      {"mad.lo", pick<Ternary<MadLo>, Integers>},
      {"mad.hi", pick<Ternary<MadHi>, Integers>},
      {"mad.wide", pick<Ternary<MadWide>, Halves>},
      {"fma", pick<Ternary<Fma>, Floats>},
      {"div", pick<Binary<Div>, Numbers>},
      {"div.full", pick<Binary<Div>, F32>},
      {"div.approx", pick<Binary<Div>, F32>},
      {"rem", pick<Binary<Rem>, Integers>},
      {"min", pick<Binary<Min>, Numbers>},
      {"max", pick<Binary<Max>, Numbers>},
      {"min.NaN", pick<Binary<MinNan>, F32>},
      {"max.NaN", pick<Binary<MaxNan>, F32>},
      {"neg", pick<Unary<Negate>, Numbers>},
      {"abs", pick<Unary<Absolute>, Types<int16_t, int32_t, int64_t, float, double>>},
      {"sad", pick<Ternary<AbsoluteDifference>, Integers>},
      {"sqrt", pick<Unary<Sqrt>, Floats>},
      {"sqrt.approx", pick<Unary<Sqrt>, F32>},
      {"rcp", pick<Unary<Reciprocal>, Floats>},
      {"rcp.approx", pick<Unary<Reciprocal>, F32>},
      {"rsqrt.approx", pick<Unary<ReciprocalSqrt>, Floats>},
      {"ex2.approx", pick<Unary<Exp2>, F32>},
      {"lg2.approx", pick<Unary<Log2>, F32>},
      {"sin.approx", pick<Unary<Sine>, F32>},
      {"cos.approx", pick<Unary<Cosine>, F32>},
      {"copysign", pick<Binary<CopySign>, Floats>},
      {"and", pick<Binary<And>, Integers>},
      {"or", pick<Binary<Or>, Integers>},
      {"xor", pick<Binary<Xor>, Integers>},
      {"not", pick<Unary<Not>, Integers>},
      {"shl", pick<Shift<ShiftLeft>, Integers>},
      {"shr", pick<Shift<ShiftRight>, Integers>},
      {"clz", pick<Unary<LeadingZeros>, Unsigned>},
      {"popc", pick<Unary<PopulationCount>, Unsigned>},
      {"brev", pick<Unary<Reverse>, Unsigned>},
      {"bfind", pick<Unary<HighestBit>, Words>},
  };
  return made;
}

template <typename F>
void ternary32(Warp& w, const Inst& i, uint32_t mask) {
  const uint32_t *a = w.in<uint32_t>(i.s[0]), *b = w.in<uint32_t>(i.s[1]),
                 *c = w.in<uint32_t>(i.s[2]);
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int l) { return F()(a[l], b[l], c[l]); });
}

const std::unordered_map<std::string, Handler>& words() {
  static const auto& made = *new std::unordered_map<std::string, Handler>{
      {"shf.l.wrap", ternary32<Funnel<true, true>>},
      {"shf.l.clamp", ternary32<Funnel<true, false>>},
      {"shf.r.wrap", ternary32<Funnel<false, true>>},
      {"shf.r.clamp", ternary32<Funnel<false, false>>},
      {"dp4a.u32", ternary32<DotBytes<uint8_t, uint8_t>>},
      {"dp4a.s32", ternary32<DotBytes<int8_t, int8_t>>},
  };
  return made;
}

}  // namespace

Handler find_arithmetic(const std::string& name, Type type) {
  if (const auto found = table().find(name); found != table().end()) return found->second(type);
  if (const auto found = words().find(name); found != words().end()) return found->second;
  return nullptr;
}

}  // namespace rf::ptx
