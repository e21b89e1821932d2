#include "warp.h"

#include "checks.h"

namespace rf::simt {

namespace {

constexpr uint64_t kRubbish = 0xABABABABABABABABull;

// Which lane of the warp `lane` reads in a shuffle, as PTX defines it; `lane` itself where the
// source would be outside its segment of `width` lanes.
int source_lane(Op op, int lane, int operand, int width) {
  const int segment = lane & ~(width - 1);
  const int last = segment + width - 1;
  switch (op) {
    case Op::kShflUp:
      return lane - operand >= segment ? lane - operand : lane;
    case Op::kShflDown:
      return lane + operand <= last ? lane + operand : lane;
    case Op::kShflXor:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
    default:
      return segment | (operand & (width - 1));
  }
}

uint32_t reduce(Op op, uint32_t a, uint32_t b) {
  const int32_t sa = static_cast<int32_t>(a), sb = static_cast<int32_t>(b);
  switch (op) {
    case Op::kReduceAdd:
      return a + b;
    case Op::kReduceMin:
      return sa < sb ? a : b;
    case Op::kReduceMinUnsigned:
      return a < b ? a : b;
    case Op::kReduceMax:
      return sa > sb ? a : b;
    case Op::kReduceMaxUnsigned:
      return a > b ? a : b;
    case Op::kReduceAnd:
      return a & b;
    case Op::kReduceOr:
      return a | b;
    default:
      return a ^ b;
  }
}

// All lanes of `mask` have come: gives each its result.
void complete(Op op, Thread* lanes, uint32_t mask) {
  if (op == Op::kSyncwarp) return;
  if (op >= Op::kShfl && op <= Op::kShflXor) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      const int source = source_lane(op, lane, lanes[lane].lane_operand, lanes[lane].width);
      const bool named = source >= 0 && source < kWarpSize && ((mask >> source) & 1u) != 0;
      lanes[lane].result = named ? lanes[source].value : kRubbish;
    }
    return;
  }
  uint32_t result = 0;
  if (op >= Op::kBallot && op <= Op::kAll) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = __builtin_ctz(rest);
      result |= static_cast<uint32_t>(lanes[lane].value) << lane;
    }
    if (op == Op::kAny) result = result != 0;
    if (op == Op::kAll) result = result == mask;
  } else {
    result = static_cast<uint32_t>(lanes[__builtin_ctz(mask)].value);
    for (uint32_t rest = mask & (mask - 1); rest != 0; rest &= rest - 1) {
      result = reduce(op, result, static_cast<uint32_t>(lanes[__builtin_ctz(rest)].value));
    }
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    lanes[__builtin_ctz(rest)].result = result;
}

void check_agreement(const Thread& self, const Thread* lanes, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = __builtin_ctz(rest);
    const Thread& other = lanes[lane];
    if (other.op == self.op && other.mask == self.mask) continue;
    fail_launch(
        "warp collective that not all its lanes reach: lane %d is in %s with mask 0x%x (%.60s:%d), "
        "lane %d "
        "in %s with mask 0x%x (%.60s:%d)",
        self.id % kWarpSize, op_name(self.op), self.mask, base_name(self.file), self.line, lane,
        op_name(other.op), other.mask, base_name(other.file), other.line);
  }
}

}  // namespace

uint64_t warp_collective(Op op, uint32_t mask, uint64_t value, int lane_operand, int width,
                         const char* file, int line) {
  Thread& self = *block.current;
  Warp& warp = block.warps[self.id / kWarpSize];
  Thread* lanes = &block.threads[self.id / kWarpSize * kWarpSize];
  const uint32_t bit = 1u << (self.id % kWarpSize);
  self.op = op;
  self.file = file;
  self.line = line;
  self.mask = mask;
  self.lane_operand = lane_operand;
  self.width = width;
  self.value = value;
  if ((mask & bit) == 0) {
    fail_launch("%s (%.60s:%d) with mask 0x%x, which does not name the calling lane %d",
                op_name(op), base_name(file), line, mask, self.id % kWarpSize);
  }
  if (width < 1 || width > kWarpSize || (width & (width - 1)) != 0) {
    fail_launch("%s (%.60s:%d) with width %d, which is not a power of two up to 32", op_name(op),
                base_name(file), line, width);
  }
  const uint32_t needed = mask & warp.exists;
  if ((needed & warp.exited) != 0) {
    fail_launch("%s (%.60s:%d) with mask 0x%x, but lanes 0x%x have exited", op_name(op),
                base_name(file), line, mask, needed & warp.exited);
  }
  warp.waiting |= bit;
  if ((warp.waiting & needed) != needed) {
    park(Wait::kWarp, op, file, line);
    return self.result;
  }
  check_agreement(self, lanes, needed);
  complete(op, lanes, needed);
  warp.waiting &= ~needed;
  flush_pending_race_check();
  ++warp.epoch;
  // The others follow in an order that starts at a random lane; this lane goes on at once.
  const int start = get_seed() == 0 ? 0 : static_cast<int>(next_random() % kWarpSize);
  for (int i = 0; i < kWarpSize; ++i) {
    const int lane = (start + i) % kWarpSize;
    if (((needed & ~bit) >> lane) & 1u) make_runnable(lanes[lane]);
  }
  return self.result;
}

}  // namespace rf::simt
