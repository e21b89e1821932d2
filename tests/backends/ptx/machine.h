// One running launch: its blocks of warps, the memory they see, what is looked for and counted.
#pragma once

#include <cstdint>
#include <vector>

#include "counters.h"
#include "memory.h"
#include "program.h"
#include "races.h"

namespace rf::ptx {

struct Block;

struct Warp {
  Block* block = nullptr;
  uint8_t* registers = nullptr;
  const uint8_t* constants = nullptr;
  uint8_t* local = nullptr;
  uint32_t first_thread = 0;
  uint32_t live = 0, at_barrier = 0, waiting = 0;  // lanes; waiting: for a warp collective
  uint32_t pc[kLanes] = {};
  uint32_t epoch = 1;                // counts its __syncwarp()
  uint32_t current = 0;              // pc of the instruction that runs
  InstCounters* counters = nullptr;  // of the current instruction

  template <typename T>
  const T* in(const Operand& o) const {
    return reinterpret_cast<const T*>((o.constant ? constants : registers) + o.offset);
  }
  template <typename T>
  T* out(const Operand& o) const {
    return reinterpret_cast<T*>(registers + o.offset);
  }
  uint32_t predicate(const Operand& o) const { return *in<uint32_t>(o); }
  void set_predicate(const Operand& o, uint32_t value, uint32_t mask) const {
    uint32_t* p = out<uint32_t>(o);
    *p = (*p & ~mask) | (value & mask);
  }
};

struct Options {
  uint32_t seed = 1;      // 0: warps and blocks in the order of their numbers, else shuffled
  bool races = true;      // look for races and uninitialised reads
  bool traffic = false;   // count sectors, wavefronts, bytes
  uint32_t grid_cap = 0;  // at most so many blocks for kernels that stride over their grid; 0: all
  int l1_bytes = 20 << 10;                      // cache of one block, for the count of L2 traffic
  uint64_t most_instructions = 20'000'000'000;  // per launch: then it is taken to hang
};

// What a GPU of an architecture has.
struct DeviceProfile {
  int arch;              // 80
  int shared_per_block;  // with cudaFuncAttributeMaxDynamicSharedMemorySize
  int shared_per_sm;
  int sms;
};
DeviceProfile profile_of(int arch);
constexpr int kDefaultShared = 48 * 1024;

struct Machine {
  const Kernel* kernel = nullptr;
  const Module* module = nullptr;
  CallMemory* memory = nullptr;
  Options options;
  std::vector<uint8_t> params;
  Dim3 grid, block_dim, block_index;
  uint32_t block_number = 0;
  uint32_t dynamic_bytes = 0;
  int allowed_dynamic = kDefaultShared;
  // Counts barriers and block starts over the whole process, so that old shadow cells are stale.
  uint32_t epoch = 0, launch_epoch = 0, block_epoch = 0;
  LaunchCounters counters;

  void launch();  // throws Fault
};

// Throws a Fault for what a driver refuses.
void check_configuration(const Machine& machine);

struct Block {
  Machine* machine = nullptr;
  std::vector<Warp> warps;
  std::vector<uint8_t> shared;
  Shadow shadow;  // of shared memory
  uint32_t barrier_pc = 0;
  bool barrier_used = false;
  bool any = false, all = true;  // bar.red
  uint32_t count = 0;
};

// Throws a Fault that says where.
[[noreturn]] void fault(const Warp& warp, int lane, const std::string& what);

// Host memory behind the address of one lane, checked for range, alignment and permission.
struct Place {
  uint8_t* host;
  Space space;      // never generic
  uint64_t offset;  // in that space; in global memory, in the array
  Array* array;     // of global memory
};
Place resolve(Warp& warp, Space space, uint64_t address, int bytes, bool write, int lane);

// Looks for races of this access with earlier ones and for reads of what nobody wrote. `changes`: a
// write of another value than is there.
void check_order(Warp& warp, const Place& place, int bytes, AccessKind kind, bool changes,
                 int lane);

}  // namespace rf::ptx
