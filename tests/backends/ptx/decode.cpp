// From the opcode of an instruction to what runs it and what it counts as.
#include <map>

#include "lanes.h"

namespace rf::ptx {
namespace {

void nothing(Warp&, const Inst&, uint32_t) {}

void active_mask(Warp& w, const Inst& i, uint32_t mask) {
  write_lanes(w.out<uint32_t>(i.d[0]), mask, [=](int) { return mask; });
}

// "mul.lo" of {"mul", "lo", "s32"}, "add" of {"add", "rn", "f32"}
std::string plain_name(const Opcode& opcode) {
  std::string name = opcode[0];
  for (size_t i = 1; i + 1 < opcode.size(); ++i) {
    if (opcode[i] != "rn") name += "." + opcode[i];
  }
  return name;
}

void decode_barrier(Inst& inst, const Opcode& opcode) {
  const bool reduces = opcode.size() > 2 && opcode[1] == "red";
  inst.kind = Inst::Kind::kBarrier, inst.cls = Class::kBarrier, inst.run = nothing;
  if (!reduces) {
    if (opcode[1] != "sync" && opcode[1] != "cta") inst.run = nullptr;
  } else if (opcode[2] == "or") {
    inst.reduction = Inst::Reduction::kOr;
  } else if (opcode[2] == "and") {
    inst.reduction = Inst::Reduction::kAnd;
  } else {
    inst.reduction = Inst::Reduction::kPopc;
  }
}

Class class_of(Type t) {
  if (t == Type::kF32) return Class::kFp32;
  if (t == Type::kF64) return Class::kFp64;
  if (t == Type::kPred) return Class::kPredicate;
  return size_of(t) == 8 ? Class::kInt64 : Class::kInt32;
}

void decode_plain(Inst& inst, const Opcode& opcode) {
  const std::string name = plain_name(opcode);
  inst.run = inst.type == Type::kPred ? nullptr : find_arithmetic(name, inst.type);
  if (name == "mul.wide" || name == "mad.wide") inst.cls = Class::kInt64;
  if (inst.run) return;
  inst.run = find_move(name, inst, opcode);
  if (opcode[0] == "mov" || opcode[0] == "cvta") inst.cls = Class::kMove;
  if (opcode[0] == "selp") inst.cls = size_of(inst.type) == 8 ? Class::kInt64 : Class::kInt32;
}

}  // namespace

const char* const kClassNames[kClasses] = {
    "ld_global", "st_global", "ld_generic", "st_generic", "ld_shared",  "st_shared", "atomic",
    "ld_param",  "local",     "fp32",       "fp64",       "int32",      "int64",     "convert",
    "move",      "predicate", "branch",     "barrier",    "collective", "exit"};

void decode(Inst& inst, const Opcode& opcode) {
  const std::string& op = opcode[0];
  inst.cls = class_of(inst.type);
  if (op == "bra") {
    inst.kind = Inst::Kind::kBranch, inst.cls = Class::kBranch, inst.run = nothing;
  } else if (op == "ret" || op == "exit") {
    inst.kind = Inst::Kind::kExit, inst.cls = Class::kExit, inst.run = nothing;
  } else if (op == "ld" || op == "st" || op == "atom" || op == "red") {
    inst.run = find_access(inst, opcode);
  } else if (op == "cvt") {
    inst.run = find_conversion(inst, opcode);
    inst.cls = Class::kConvert;
  } else if (op == "setp") {
    inst.run = find_comparison(opcode, inst.type);
  } else if ((op == "bar" && opcode[1] != "warp") || op == "barrier") {
    decode_barrier(inst, opcode);
  } else if (op == "bar" || op == "shfl" || op == "vote" || op == "redux" || op == "match") {
    inst.kind = Inst::Kind::kCollective, inst.cls = Class::kCollective;
    inst.run = find_collective(inst, opcode);
  } else if (op == "activemask") {
    inst.run = active_mask, inst.cls = Class::kCollective;
  } else if (op == "nop" || op == "nanosleep" || op == "prefetch") {
    inst.run = nothing;
  } else {
    decode_plain(inst, opcode);
  }
}

int size_of(Type t) {
  switch (t) {
    case Type::kU8:
    case Type::kS8:
      return 1;
    case Type::kU16:
    case Type::kS16:
    case Type::kF16:
    case Type::kBF16:
      return 2;
    case Type::kU32:
    case Type::kS32:
    case Type::kF32:
      return 4;
    case Type::kU64:
    case Type::kS64:
    case Type::kF64:
      return 8;
    default:
      return 0;
  }
}

Type type_named(const std::string& name) {
  static const auto& types = *new std::map<std::string, Type>{
      {"pred", Type::kPred}, {"u8", Type::kU8},   {"s8", Type::kS8},   {"b8", Type::kU8},
      {"u16", Type::kU16},   {"s16", Type::kS16}, {"b16", Type::kU16}, {"u32", Type::kU32},
      {"s32", Type::kS32},   {"b32", Type::kU32}, {"u64", Type::kU64}, {"s64", Type::kS64},
      {"b64", Type::kU64},   {"f16", Type::kF16}, {"f32", Type::kF32}, {"f64", Type::kF64},
      {"bf16", Type::kBF16}};
  const auto found = types.find(name);
  return found == types.end() ? Type::kNone : found->second;
}

}  // namespace rf::ptx
