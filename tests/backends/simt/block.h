// The block scheduler: threads of a block as fibers on the calling OS thread, run in seeded random
// order until they wait or exit. One launch runs at a time in a process (launch.cpp holds a lock),
// so state is global.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fiber.h"
#include "vector_types.h"

namespace rf::simt {

constexpr int kWarpSize = 32;
constexpr int kMaxThreads = 1024;

enum class Wait : uint8_t { kRunnable, kBarrier, kWarp, kExited };

// What a waiting thread waits in: the name for messages is op_name().
enum class Op : uint8_t {
  kSyncthreads,
  kSyncthreadsOr,
  kSyncthreadsAnd,
  kSyncthreadsCount,
  kSyncwarp,
  kBallot,
  kAny,
  kAll,
  kShfl,
  kShflUp,
  kShflDown,
  kShflXor,
  kReduceAdd,
  kReduceMin,
  kReduceMinUnsigned,
  kReduceMax,
  kReduceMaxUnsigned,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
};
const char* op_name(Op op);

struct Thread {
  void* context;  // where to continue; null before the first instruction
  Stack* stack;
  void* sanitizer_stack;
  uint3 index;
  uint16_t id;  // x + blockDim.x * (y + blockDim.y * z)
  Wait wait;
  Op op;
  int line;  // of the barrier or collective it waits in
  const char* file;
  // Operands and result of a warp collective (warp.cpp).
  uint32_t mask;
  int32_t lane_operand;
  int32_t width;
  uint64_t value;
  uint64_t result;
};

struct Warp {
  uint32_t exists;  // lanes that the block has
  uint32_t exited;
  uint32_t waiting;  // lanes in a collective
  uint32_t epoch;    // completed collectives, for the race detector
};

struct Block {
  Thread threads[kMaxThreads];
  Warp warps[kMaxThreads / kWarpSize];
  Thread* current;
  int size;  // threads
  int exited;
  uint32_t epoch;        // completed barriers of this process, one more for every block
  uint32_t first_epoch;  // of this block
  // The barrier threads are arriving at.
  int arrived;
  int votes;        // of them with a true predicate
  int vote_result;  // of the last completed barrier
};
extern Block block;

// What the emulator needs to know of a launch.
struct Launch {
  void (*run_thread)(const void* kernel_and_arguments);
  const void* kernel_and_arguments;
  const void* kernel;  // its address, to find its name
  dim3 grid, block;
  size_t dynamic_bytes;
  const char* file;  // of the launch statement
  int line;
};

// Runs one block to its end. False if it failed; failure() says why.
bool run_block(const Launch& launch, uint3 index, uint64_t order_seed);

// Ends the launch with this sentence from anywhere in a kernel. Nothing of the block runs any more.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail_launch(const char* format, ...);
const char* failure();
// Optional, before fail_launch: the instruction at fault.
void set_failure_code(const void* code);
const void* failure_code();
bool in_kernel();

// All threads of the block meet here; returns how many came with a true predicate.
int block_barrier(Op op, bool predicate, const char* file, int line);

// Parks the current thread in `wait` and runs others until somebody makes it runnable again.
void park(Wait wait, Op op, const char* file, int line);
void make_runnable(Thread& thread);

uint32_t next_random();  // of the current block's order
void set_seed(uint64_t seed);
uint64_t get_seed();

// "gaussian_filter.cu" of a path.
const char* base_name(const char* path);

}  // namespace rf::simt
