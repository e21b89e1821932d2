// setp: comparisons, ordered ones false and unordered ones true where an operand is NaN.
#include "lanes.h"

namespace rf::ptx {
namespace {

// clang-format off: one line each
struct Equal { template <typename T> bool operator()(T a, T b) const { return a == b; } };
struct NotEqual { template <typename T> bool operator()(T a, T b) const { return a < b || a > b; } };
struct Less { template <typename T> bool operator()(T a, T b) const { return a < b; } };
struct LessEqual { template <typename T> bool operator()(T a, T b) const { return a <= b; } };
struct Greater { template <typename T> bool operator()(T a, T b) const { return a > b; } };
struct GreaterEqual { template <typename T> bool operator()(T a, T b) const { return a >= b; } };
struct Number { template <typename T> bool operator()(T a, T b) const { return a == a && b == b; } };
template <typename F>
struct Unless { template <typename T> bool operator()(T a, T b) const { return !F()(a, b); } };
// clang-format on

template <typename F>
struct Compare {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T *a = w.in<T>(i.s[0]), *b = w.in<T>(i.s[1]);
    uint32_t bits = 0;
    for (int l = 0; l < kLanes; ++l) bits |= static_cast<uint32_t>(F()(a[l], b[l])) << l;
    w.set_predicate(i.d[0], bits, mask);
  }
};

Handler find(const std::string& name, Type type) {
  if (name == "eq") return pick<Compare<Equal>, Numbers>(type);
  if (name == "ne") return pick<Compare<NotEqual>, Numbers>(type);
  if (name == "lt" || name == "lo") return pick<Compare<Less>, Numbers>(type);
  if (name == "le" || name == "ls") return pick<Compare<LessEqual>, Numbers>(type);
  if (name == "gt" || name == "hi") return pick<Compare<Greater>, Numbers>(type);
  if (name == "ge" || name == "hs") return pick<Compare<GreaterEqual>, Numbers>(type);
  if (name == "equ") return pick<Compare<Unless<NotEqual>>, Floats>(type);
  if (name == "neu") return pick<Compare<Unless<Equal>>, Floats>(type);
  if (name == "ltu") return pick<Compare<Unless<GreaterEqual>>, Floats>(type);
  if (name == "leu") return pick<Compare<Unless<Greater>>, Floats>(type);
  if (name == "gtu") return pick<Compare<Unless<LessEqual>>, Floats>(type);
  if (name == "geu") return pick<Compare<Unless<Less>>, Floats>(type);
  if (name == "num") return pick<Compare<Number>, Floats>(type);
  if (name == "nan") return pick<Compare<Unless<Number>>, Floats>(type);
  return nullptr;
}

}  // namespace

Handler find_comparison(const Opcode& opcode, Type type) {
  // One predicate, no second condition: nvcc writes no other.
  return opcode.size() == 3 ? find(opcode[1], type) : nullptr;
}

}  // namespace rf::ptx
