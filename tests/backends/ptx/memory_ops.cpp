// ld, st, atom and red: every lane's address is resolved and checked, then the values move.
#include <algorithm>
#include <set>

#include "lanes.h"
#include "traffic.h"

namespace rf::ptx {
namespace {

void addresses(Warp& w, const Inst& i, uint64_t* address) {
  if (i.s[0].bytes == 4) {
    const uint32_t* a = w.in<uint32_t>(i.s[0]);
    for (int l = 0; l < kLanes; ++l) address[l] = a[l] + static_cast<uint32_t>(i.offset);
  } else {
    const uint64_t* a = w.in<uint64_t>(i.s[0]);
    for (int l = 0; l < kLanes; ++l) address[l] = a[l] + static_cast<uint64_t>(i.offset);
  }
}

// Lanes of a generic access may be in different spaces.
void count(Warp& w, const Place* places, uint32_t mask, int bytes, bool write) {
  uint32_t of_space[6] = {};
  for (uint32_t left = mask; left; left &= left - 1) {
    const int l = __builtin_ctz(left);
    of_space[static_cast<int>(places[l].space)] |= 1u << l;
  }
  const auto lanes = [&](Space s) { return of_space[static_cast<int>(s)]; };
  if (lanes(Space::kGlobal)) count_global(w, places, lanes(Space::kGlobal), bytes, write);
  if (lanes(Space::kShared)) count_shared(w, places, lanes(Space::kShared), bytes);
  if (lanes(Space::kLocal)) count_local(w, lanes(Space::kLocal), bytes);
}

void load_value(Warp& w, const Operand& to, Type type, int lane, const uint8_t* from) {
  const int bytes = size_of(type);
  if (to.bytes == bytes) {
    memcpy(w.out<uint8_t>(to) + lane * bytes, from, bytes);
    return;
  }
  uint64_t wide = 0;  // into a wider register: extended
  memcpy(&wide, from, bytes);
  const int shift = 64 - 8 * bytes;
  if (is_signed(type)) wide = static_cast<uint64_t>(static_cast<int64_t>(wide << shift) >> shift);
  memcpy(w.out<uint8_t>(to) + lane * to.bytes, &wide, to.bytes);
}

void load(Warp& w, const Inst& i, uint32_t mask) {
  const Machine& m = *w.block->machine;
  uint64_t address[kLanes];
  addresses(w, i, address);
  const int each = size_of(i.type), bytes = each * i.width;
  const AccessKind kind = i.read_only_cache ? AccessKind::kReadOnlyCache : AccessKind::kRead;
  Place places[kLanes];
  for (uint32_t left = mask; left; left &= left - 1) {
    const int l = __builtin_ctz(left);
    places[l] = resolve(w, i.space, address[l], bytes, false, l);
    if (m.options.races) check_order(w, places[l], bytes, kind, false, l);
    for (int v = 0; v < i.width; ++v)
      if (i.d[v]) load_value(w, i.d[v], i.type, l, places[l].host + v * each);
  }
  if (m.options.traffic) count(w, places, mask, bytes, false);
}

void store(Warp& w, const Inst& i, uint32_t mask) {
  const Machine& m = *w.block->machine;
  uint64_t address[kLanes];
  addresses(w, i, address);
  const int each = size_of(i.type), bytes = each * i.width;
  Place places[kLanes];
  for (uint32_t left = mask; left; left &= left - 1) {
    const int l = __builtin_ctz(left);
    places[l] = resolve(w, i.space, address[l], bytes, true, l);
    uint8_t value[64];
    for (int v = 0; v < i.width; ++v) {
      const Operand& from = i.s[1 + v];
      memcpy(value + v * each, w.in<uint8_t>(from) + l * from.bytes, each);
    }
    if (m.options.races) {
      const bool changes = memcmp(places[l].host, value, bytes) != 0;
      check_order(w, places[l], bytes, AccessKind::kWrite, changes, l);
    }
    memcpy(places[l].host, value, bytes);
  }
  if (m.options.traffic) count(w, places, mask, bytes, true);
}

// clang-format off: one line each
struct AtomicAdd { template <typename T> T operator()(T old, T b, T) const { return static_cast<T>(old + b); } };
struct AtomicMin { template <typename T> T operator()(T old, T b, T) const { return std::min(old, b); } };
struct AtomicMax { template <typename T> T operator()(T old, T b, T) const { return std::max(old, b); } };
struct AtomicAnd { template <typename T> T operator()(T old, T b, T) const { return old & b; } };
struct AtomicOr { template <typename T> T operator()(T old, T b, T) const { return old | b; } };
struct AtomicXor { template <typename T> T operator()(T old, T b, T) const { return old ^ b; } };
struct Exchange { template <typename T> T operator()(T, T b, T) const { return b; } };
struct CompareAndSwap { template <typename T> T operator()(T old, T b, T c) const { return old == b ? c : old; } };
struct Increment { template <typename T> T operator()(T old, T b, T) const { return old >= b ? T(0) : old + 1; } };
struct Decrement { template <typename T> T operator()(T old, T b, T) const { return old == 0 || old > b ? b : old - 1; } };
// clang-format on

template <typename F>
struct Atomic {
  template <typename T>
  static void run(Warp& w, const Inst& i, uint32_t mask) {
    const Machine& m = *w.block->machine;
    uint64_t address[kLanes];
    addresses(w, i, address);
    const T *b = w.in<T>(i.s[1]), *c = i.s[2] ? w.in<T>(i.s[2]) : b;
    Place places[kLanes];
    for (uint32_t left = mask; left; left &= left - 1) {
      const int l = __builtin_ctz(left);
      places[l] = resolve(w, i.space, address[l], sizeof(T), true, l);
      if (m.options.races) check_order(w, places[l], sizeof(T), AccessKind::kAtomic, true, l);
      T old;
      memcpy(&old, places[l].host, sizeof(T));
      const T updated = F()(old, b[l], c[l]);
      memcpy(places[l].host, &updated, sizeof(T));
      if (i.d[0]) w.out<T>(i.d[0])[l] = old;
    }
    if (!m.options.traffic) return;
    const bool global = places[__builtin_ctz(mask)].space == Space::kGlobal;
    if (global) count_global(w, places, mask, sizeof(T), true);
    count_atomic(w, places, mask, sizeof(T));
  }
};

Handler find_atomic(const std::string& op, Type t) {
  using Unsigned = Types<uint32_t, uint64_t>;
  if (op == "add")
    return pick<Atomic<AtomicAdd>, Types<uint32_t, int32_t, uint64_t, int64_t, float, double>>(t);
  if (op == "min") return pick<Atomic<AtomicMin>, Words>(t);
  if (op == "max") return pick<Atomic<AtomicMax>, Words>(t);
  if (op == "and") return pick<Atomic<AtomicAnd>, Unsigned>(t);
  if (op == "or") return pick<Atomic<AtomicOr>, Unsigned>(t);
  if (op == "xor") return pick<Atomic<AtomicXor>, Unsigned>(t);
  if (op == "exch") return pick<Atomic<Exchange>, Unsigned>(t);
  if (op == "cas") return pick<Atomic<CompareAndSwap>, Unsigned>(t);
  if (op == "inc") return pick<Atomic<Increment>, Types<uint32_t>>(t);
  if (op == "dec") return pick<Atomic<Decrement>, Types<uint32_t>>(t);
  return nullptr;
}

Class class_of(Space space, bool write) {
  switch (space) {
    case Space::kShared:
      return write ? Class::kStoreShared : Class::kLoadShared;
    case Space::kParam:
    case Space::kConst:
      return Class::kParam;
    case Space::kLocal:
      return Class::kLocal;
    case Space::kGlobal:
      return write ? Class::kStoreGlobal : Class::kLoadGlobal;
    default:
      return write ? Class::kStoreGeneric : Class::kLoadGeneric;
  }
}

bool is_space(const std::string& s, Space* space) {
  if (s == "global") return *space = Space::kGlobal, true;
  if (s == "shared" || s == "shared::cta") return *space = Space::kShared, true;
  if (s == "local") return *space = Space::kLocal, true;
  if (s == "param" || s == "param::entry") return *space = Space::kParam, true;
  return s == "const" ? (*space = Space::kConst, true) : false;
}

}  // namespace

// Cache hints change nothing here. Stronger orders than .relaxed are not known: the race detector
// has no order between blocks.
Handler find_access(Inst& inst, const Opcode& opcode) {
  static const auto& hints = *new std::set<std::string>{
      "volatile", "v2", "v4", "relaxed", "weak", "ca",  "cg",  "cs",
      "lu",       "cv", "wb", "wt",      "gpu",  "cta", "sys", "L1::no_allocate"};
  const bool atomic = opcode[0] == "atom" || opcode[0] == "red";
  std::string operation;
  for (size_t i = 1; i + 1 < opcode.size(); ++i) {
    if (is_space(opcode[i], &inst.space) || hints.count(opcode[i])) continue;
    if (opcode[i] == "nc") {
      inst.read_only_cache = true;
    } else if (atomic) {
      operation = opcode[i];
    } else {
      return nullptr;
    }
  }
  inst.cls = atomic ? Class::kAtomic : class_of(inst.space, opcode[0] == "st");
  if (inst.type == Type::kNone) return nullptr;
  if (atomic) return find_atomic(operation, inst.type);
  return opcode[0] == "st" ? store : load;
}

}  // namespace rf::ptx
