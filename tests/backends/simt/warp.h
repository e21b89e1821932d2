// Warp collectives: shuffles, votes, reductions. Every lane named in the mask must come to the same
// kind of collective with the same mask; a lane that has exited or waits elsewhere is an error, and
// a value read from a lane outside the mask is rubbish (poison).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "block.h"

namespace rf::simt {

// Waits for the other lanes; returns this lane's result.
uint64_t warp_collective(Op op, uint32_t mask, uint64_t value, int lane_operand, int width,
                         const char* file, int line);

template <typename T>
T shuffle(Op op, uint32_t mask, T value, int lane_operand, int width, const char* file, int line) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "shuffles move 32- and 64-bit numbers");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(T));
  bits = warp_collective(op, mask, bits, lane_operand, width, file, line);
  memcpy(&value, &bits, sizeof(T));
  return value;
}

inline int lane_id() { return block.current->id % kWarpSize; }

}  // namespace rf::simt

#define RF_SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, RF_SIMT_SITE) {
  return rf::simt::shuffle(rf::simt::Op::kShfl, mask, value, source, width, file, line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, RF_SIMT_SITE) {
  return rf::simt::shuffle(rf::simt::Op::kShflUp, mask, value, static_cast<int>(delta), width, file,
                           line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, RF_SIMT_SITE) {
  return rf::simt::shuffle(rf::simt::Op::kShflDown, mask, value, static_cast<int>(delta), width,
                           file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, RF_SIMT_SITE) {
  return rf::simt::shuffle(rf::simt::Op::kShflXor, mask, value, lane_mask, width, file, line);
}

inline void __syncwarp(unsigned mask = 0xffffffffu, RF_SIMT_SITE) {
  rf::simt::warp_collective(rf::simt::Op::kSyncwarp, mask, 0, 0, 32, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, RF_SIMT_SITE) {
  return static_cast<unsigned>(
      rf::simt::warp_collective(rf::simt::Op::kBallot, mask, predicate != 0, 0, 32, file, line));
}
inline int __any_sync(unsigned mask, int predicate, RF_SIMT_SITE) {
  return rf::simt::warp_collective(rf::simt::Op::kAny, mask, predicate != 0, 0, 32, file, line) !=
         0;
}
inline int __all_sync(unsigned mask, int predicate, RF_SIMT_SITE) {
  return rf::simt::warp_collective(rf::simt::Op::kAll, mask, predicate != 0, 0, 32, file, line) !=
         0;
}

// Hardware promises nothing about who is converged, so only the calling lane counts: code that
// relies on more is wrong on some GPU.
inline unsigned __activemask() { return 1u << rf::simt::lane_id(); }

#define RF_SIMT_REDUCE(name, type, op)                                             \
  inline type name(unsigned mask, type value, RF_SIMT_SITE) {                      \
    return static_cast<type>(rf::simt::warp_collective(                            \
        rf::simt::Op::op, mask, static_cast<uint32_t>(value), 0, 32, file, line)); \
  }
RF_SIMT_REDUCE(__reduce_add_sync, unsigned, kReduceAdd)
RF_SIMT_REDUCE(__reduce_add_sync, int, kReduceAdd)
RF_SIMT_REDUCE(__reduce_min_sync, unsigned, kReduceMinUnsigned)
RF_SIMT_REDUCE(__reduce_min_sync, int, kReduceMin)
RF_SIMT_REDUCE(__reduce_max_sync, unsigned, kReduceMaxUnsigned)
RF_SIMT_REDUCE(__reduce_max_sync, int, kReduceMax)
RF_SIMT_REDUCE(__reduce_and_sync, unsigned, kReduceAnd)
RF_SIMT_REDUCE(__reduce_or_sync, unsigned, kReduceOr)
RF_SIMT_REDUCE(__reduce_xor_sync, unsigned, kReduceXor)
#undef RF_SIMT_REDUCE

inline void __syncthreads(RF_SIMT_SITE) {
  rf::simt::block_barrier(rf::simt::Op::kSyncthreads, false, file, line);
}
inline int __syncthreads_count(int predicate, RF_SIMT_SITE) {
  return rf::simt::block_barrier(rf::simt::Op::kSyncthreadsCount, predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, RF_SIMT_SITE) {
  return rf::simt::block_barrier(rf::simt::Op::kSyncthreadsOr, predicate != 0, file, line) > 0;
}
inline int __syncthreads_and(int predicate, RF_SIMT_SITE) {
  return rf::simt::block_barrier(rf::simt::Op::kSyncthreadsAnd, predicate != 0, file, line) ==
         rf::simt::block.size;
}
