// Warp collectives: machine.cpp runs them when all lanes of the member mask are there.
#include "lanes.h"

namespace rf::ptx {
namespace {

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

template <Shuffle kKind>
void shuffle(Warp& w, const Inst& i, uint32_t mask) {  // d|p, a, b, c, members
  uint32_t a[kLanes], b[kLanes], c[kLanes], result[kLanes];
  memcpy(a, w.in<uint32_t>(i.s[0]), sizeof(a));
  memcpy(b, w.in<uint32_t>(i.s[1]), sizeof(b));
  memcpy(c, w.in<uint32_t>(i.s[2]), sizeof(c));
  uint32_t inside = 0;
  for (int l = 0; l < kLanes; ++l) {
    const int value = b[l] & 31, clamp = c[l] & 31, segment = (c[l] >> 8) & 31;
    const int bound = (l & segment) | (clamp & ~segment);
    int from = 0;
    switch (kKind) {
      case Shuffle::kUp:
        from = l - value;
        break;
      case Shuffle::kDown:
        from = l + value;
        break;
      case Shuffle::kButterfly:
        from = l ^ value;
        break;
      case Shuffle::kIndex:
        from = (l & segment) | (value & ~segment);
        break;
    }
    const bool valid = kKind == Shuffle::kUp ? from >= bound : from <= bound;
    if (!valid) from = l;
    // From a lane that is not here the value is undefined: rubbish, as the hardware may give.
    result[l] = (mask >> from) & 1 ? a[from] : 0xdeadbeefu;
    inside |= static_cast<uint32_t>(valid) << l;
  }
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [&](int l) { return result[l]; });
  if (i.d[1]) w.set_predicate(i.d[1], inside, mask);
}

void vote_all(Warp& w, const Inst& i, uint32_t mask) {
  w.set_predicate(i.d[0], (w.predicate(i.s[0]) & mask) == mask ? kAllLanes : 0, mask);
}
void vote_any(Warp& w, const Inst& i, uint32_t mask) {
  w.set_predicate(i.d[0], (w.predicate(i.s[0]) & mask) != 0 ? kAllLanes : 0, mask);
}
void vote_uniform(Warp& w, const Inst& i, uint32_t mask) {
  const uint32_t p = w.predicate(i.s[0]) & mask;
  w.set_predicate(i.d[0], p == 0 || p == mask ? kAllLanes : 0, mask);
}
void vote_ballot(Warp& w, const Inst& i, uint32_t mask) {
  const uint32_t bits = w.predicate(i.s[0]) & mask;
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int) { return bits; });
}

// Only this one orders memory within the warp, and only if it names all lanes.
void sync_warp(Warp& w, const Inst&, uint32_t mask) {
  if (mask == w.live) ++w.epoch;
}

template <typename T, typename F>
void reduce(Warp& w, const Inst& i, uint32_t mask, F join) {
  const T* a = w.in<T>(i.s[0]);
  T total = a[__builtin_ctz(mask)];
  for (uint32_t left = mask & (mask - 1); left; left &= left - 1)
    total = join(total, a[__builtin_ctz(left)]);
  write_lanes(w.out<T>(i.d[0]), mask, [=](int) { return total; });
}
// clang-format off: one line each
void reduce_add(Warp& w, const Inst& i, uint32_t m) { reduce<uint32_t>(w, i, m, [](auto a, auto b) { return a + b; }); }
void reduce_and(Warp& w, const Inst& i, uint32_t m) { reduce<uint32_t>(w, i, m, [](auto a, auto b) { return a & b; }); }
void reduce_or(Warp& w, const Inst& i, uint32_t m) { reduce<uint32_t>(w, i, m, [](auto a, auto b) { return a | b; }); }
void reduce_xor(Warp& w, const Inst& i, uint32_t m) { reduce<uint32_t>(w, i, m, [](auto a, auto b) { return a ^ b; }); }
template <typename T>
void reduce_min(Warp& w, const Inst& i, uint32_t m) { reduce<T>(w, i, m, [](T a, T b) { return a < b ? a : b; }); }
template <typename T>
void reduce_max(Warp& w, const Inst& i, uint32_t m) { reduce<T>(w, i, m, [](T a, T b) { return a > b ? a : b; }); }
// clang-format on

struct MatchAny {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const T* a = w.in<T>(i.s[0]);
    write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int l) {
      uint32_t same = 0;
      for (int k = 0; k < kLanes; ++k) same |= static_cast<uint32_t>(a[k] == a[l]) << k;
      return same & mask;
    });
  }
};

Handler find_reduction(const std::string& op, Type t) {
  if (op == "add") return reduce_add;
  if (op == "and") return reduce_and;
  if (op == "or") return reduce_or;
  if (op == "xor") return reduce_xor;
  if (op == "min") return t == Type::kS32 ? reduce_min<int32_t> : reduce_min<uint32_t>;
  if (op == "max") return t == Type::kS32 ? reduce_max<int32_t> : reduce_max<uint32_t>;
  return nullptr;
}

}  // namespace

// The member mask goes where the machine looks for it: s[4].
Handler find_collective(Inst& inst, const Opcode& opcode) {
  const std::string& op = opcode[0];
  const auto named = [&](size_t i, const char* what) {
    return opcode.size() > i && opcode[i] == what;
  };
  if (op == "bar") {  // bar.warp.sync
    inst.s[4] = inst.s[0];
    return sync_warp;
  }
  if (op == "redux" && named(1, "sync")) {
    inst.s[4] = inst.s[1];
    return find_reduction(opcode[2], inst.type);
  }
  if (op == "match" && named(1, "any")) {
    inst.s[4] = inst.s[1];
    return pick<MatchAny, Types<uint32_t, uint64_t>>(inst.type);
  }
  if (op == "vote" && named(1, "sync")) {
    inst.s[4] = inst.s[1];
    if (named(2, "all")) return vote_all;
    if (named(2, "any")) return vote_any;
    if (named(2, "uni")) return vote_uniform;
    return named(2, "ballot") ? Handler(vote_ballot) : nullptr;
  }
  if (op == "shfl" && named(1, "sync")) {
    inst.s[4] = inst.s[3];
    if (named(2, "up")) return shuffle<Shuffle::kUp>;
    if (named(2, "down")) return shuffle<Shuffle::kDown>;
    if (named(2, "bfly")) return shuffle<Shuffle::kButterfly>;
    return named(2, "idx") ? Handler(shuffle<Shuffle::kIndex>) : nullptr;
  }
  return nullptr;
}

}  // namespace rf::ptx
