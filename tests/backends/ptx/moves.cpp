// Moves, packing, selection, bytes and bit fields, predicates, and addresses between spaces.
#include <cmath>

#include "lanes.h"

namespace rf::ptx {
namespace {

struct Same {
  template <typename T>
  T operator()(T a) const {
    return a;
  }
};

// mov.b64 {low, high}, a: the parts are of one size.
void unpack(Warp& w, const Inst& i, uint32_t mask) {
  const int from = i.s[0].bytes;
  for (int l = 0; l < kLanes; ++l) {
    if (!((mask >> l) & 1)) continue;
    uint64_t value = 0;
    memcpy(&value, w.in<uint8_t>(i.s[0]) + l * from, from);
    const uint8_t* part = reinterpret_cast<const uint8_t*>(&value);
    for (int k = 0; k < i.width; ++k, part += from / i.width) {
      const Operand& d = i.d[k];
      if (d) memcpy(w.out<uint8_t>(d) + l * d.bytes, part, d.bytes);  // else {_, high}
    }
  }
}

void pack(Warp& w, const Inst& i, uint32_t mask) {
  const int to = i.d[0].bytes;
  for (int l = 0; l < kLanes; ++l) {
    if (!((mask >> l) & 1)) continue;
    uint64_t value = 0;
    uint8_t* part = reinterpret_cast<uint8_t*>(&value);
    for (int k = 0; k < 4 && i.s[k]; ++k) {
      const Operand& s = i.s[k];
      const int bytes = s.constant ? to / 2 : s.bytes;  // a constant has the size of the whole
      memcpy(part, w.in<uint8_t>(s) + l * s.bytes, bytes);
      part += bytes;
    }
    memcpy(w.out<uint8_t>(i.d[0]) + l * to, &value, to);
  }
}

struct Select {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T *a = w.in<T>(i.s[0]), *b = w.in<T>(i.s[1]);
    const uint32_t p = w.predicate(i.s[2]);
    write_lanes(w.out<T>(i.d[0]), mask, [=](int l) { return (p >> l) & 1 ? a[l] : b[l]; });
  }
};

uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t bytes = a | static_cast<uint64_t>(b) << 32;
  uint32_t result = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t s = (selector >> (4 * k)) & 15;
    uint32_t byte = (bytes >> (8 * (s & 7))) & 255;
    if (s & 8) byte = byte & 128 ? 255 : 0;  // the sign, replicated
    result |= byte << (8 * k);
  }
  return result;
}
void run_permute(Warp& w, const Inst& i, uint32_t mask) {
  const uint32_t *a = w.in<uint32_t>(i.s[0]), *b = w.in<uint32_t>(i.s[1]),
                 *s = w.in<uint32_t>(i.s[2]);
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int l) { return permute(a[l], b[l], s[l]); });
}

void run_lop3(Warp& w, const Inst& i, uint32_t mask) {  // any function of three bits, as a table
  const uint32_t *a = w.in<uint32_t>(i.s[0]), *b = w.in<uint32_t>(i.s[1]),
                 *c = w.in<uint32_t>(i.s[2]), *table = w.in<uint32_t>(i.s[3]);
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int l) {
    uint32_t r = 0;
    for (int k = 0; k < 8; ++k) {
      if (!((table[l] >> k) & 1)) continue;
      r |= (k & 4 ? a[l] : ~a[l]) & (k & 2 ? b[l] : ~b[l]) & (k & 1 ? c[l] : ~c[l]);
    }
    return r;
  });
}

struct InsertBits {  // bfi d, a, b, position, length
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T *a = w.in<T>(i.s[0]), *b = w.in<T>(i.s[1]);
    const uint32_t *position = w.in<uint32_t>(i.s[2]), *length = w.in<uint32_t>(i.s[3]);
    constexpr uint32_t kBits = 8 * sizeof(T);
    write_lanes(w.out<T>(i.d[0]), mask, [=](int l) {
      const uint32_t p = position[l] & 255, n = length[l] & 255;
      const T field = n >= kBits ? ~T(0) : (T(1) << n) - 1;
      const T at = p >= kBits ? T(0) : field << p;
      return (b[l] & ~at) | ((p >= kBits ? T(0) : a[l] << p) & at);
    });
  }
};

struct ExtractBits {  // bfe d, a, position, length
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T* a = w.in<T>(i.s[0]);
    const uint32_t *position = w.in<uint32_t>(i.s[1]), *length = w.in<uint32_t>(i.s[2]);
    constexpr uint32_t kBits = 8 * sizeof(T);
    write_lanes(w.out<T>(i.d[0]), mask, [=](int l) {
      const uint32_t p = position[l] & 255, n = length[l] & 255;
      const bool negative =
          std::is_signed_v<T> && n > 0 && ((a[l] >> std::min(p + n - 1, kBits - 1)) & 1);
      uint64_t r = negative ? ~uint64_t{0} : 0;
      for (uint32_t k = 0; k < n && k < kBits && p + k < kBits; ++k) {
        const uint64_t bit = (static_cast<uint64_t>(a[l]) >> (p + k)) & 1;
        r = (r & ~(uint64_t{1} << k)) | bit << k;
      }
      return static_cast<T>(r);
    });
  }
};

// Between the address in a space and the generic one. An address that is not of the space becomes
// one that no memory has.
template <uint64_t kWindow, bool kToSpace>
void convert_address(Warp& w, const Inst& i, uint32_t mask) {
  constexpr uint64_t kNowhere = uint64_t{0xee} << 56;
  const uint64_t* a = w.in<uint64_t>(i.s[0]);
  write_lanes(w.out<uint64_t>(i.d[0]), mask, [=](int l) {
    if (!kToSpace) return a[l] + kWindow;
    return (a[l] & kWindowMask) == kWindow ? a[l] - kWindow : a[l] | kNowhere;
  });
}

template <uint64_t kWindow>
void is_space(Warp& w, const Inst& i, uint32_t mask) {  // isspacep
  const uint64_t* a = w.in<uint64_t>(i.s[0]);
  uint32_t bits = 0;
  for (int l = 0; l < kLanes; ++l)
    bits |= static_cast<uint32_t>((a[l] & kWindowMask) == kWindow) << l;
  w.set_predicate(i.d[0], bits, mask);
}

Handler find_address(const Opcode& opcode) {
  const bool to = opcode[1] == "to";
  const std::string& space = opcode[to ? 2 : 1];
  if (space == "global") return convert_address<0, false>;
  if (space == "shared")
    return to ? convert_address<kSharedWindow, true> : convert_address<kSharedWindow, false>;
  if (space == "local")
    return to ? convert_address<kLocalWindow, true> : convert_address<kLocalWindow, false>;
  if (space == "param")
    return to ? convert_address<kParamWindow, true> : convert_address<kParamWindow, false>;
  return nullptr;
}

enum class Logic { kAnd, kOr, kXor, kNot, kMove };
template <Logic kLogic>
void predicate(Warp& w, const Inst& i, uint32_t mask) {
  const uint32_t a = w.predicate(i.s[0]);
  uint32_t value = kLogic == Logic::kNot ? ~a : a;
  if constexpr (kLogic == Logic::kAnd) value = a & w.predicate(i.s[1]);
  if constexpr (kLogic == Logic::kOr) value = a | w.predicate(i.s[1]);
  if constexpr (kLogic == Logic::kXor) value = a ^ w.predicate(i.s[1]);
  w.set_predicate(i.d[0], value, mask);
}

Handler find_predicate(const std::string& name) {
  if (name == "and") return predicate<Logic::kAnd>;
  if (name == "or") return predicate<Logic::kOr>;
  if (name == "xor") return predicate<Logic::kXor>;
  if (name == "not") return predicate<Logic::kNot>;
  return name == "mov" ? Handler(predicate<Logic::kMove>) : nullptr;
}

template <bool (*f)(double)>
struct TestFloat {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T* a = w.in<T>(i.s[0]);
    uint32_t bits = 0;
    for (int l = 0; l < kLanes; ++l) bits |= static_cast<uint32_t>(f(a[l])) << l;
    w.set_predicate(i.d[0], bits, mask);
  }
};
bool is_nan(double v) { return v != v; }
bool is_number(double v) { return v == v; }
bool is_finite(double v) { return std::isfinite(v); }
bool is_infinite(double v) { return std::isinf(v); }

}  // namespace

Handler find_move(const std::string& name, const Inst& inst, const Opcode& opcode) {
  const Type t = inst.type;
  if (opcode[0] == "cvta") return find_address(opcode);
  if (name == "isspacep") {
    if (opcode[1] == "shared") return is_space<kSharedWindow>;
    if (opcode[1] == "local") return is_space<kLocalWindow>;
    return opcode[1] == "global" ? Handler(is_space<0>) : nullptr;
  }
  if (t == Type::kPred) return find_predicate(name);
  if (name == "mov" && inst.width > 1) return unpack;
  if (name == "mov" && inst.s[1]) return pack;
  if (name == "mov") return pick<Unary<Same>, Numbers>(t);
  if (name == "selp") return pick<Select, Numbers>(t);
  if (name == "prmt") return run_permute;
  if (name == "lop3") return run_lop3;
  if (name == "bfi") return pick<InsertBits, Types<uint32_t, uint64_t>>(t);
  if (name == "bfe") return pick<ExtractBits, Words>(t);
  if (name == "testp.notanumber") return pick<TestFloat<is_nan>, Floats>(t);
  if (name == "testp.number") return pick<TestFloat<is_number>, Floats>(t);
  if (name == "testp.finite") return pick<TestFloat<is_finite>, Floats>(t);
  if (name == "testp.infinite") return pick<TestFloat<is_infinite>, Floats>(t);
  return nullptr;
}

}  // namespace rf::ptx
