// What is counted while a kernel runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program.h"

namespace rf::ptx {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};

struct InstCounters {
  uint64_t warps = 0, lanes = 0;  // executions, and active lanes in them
  uint64_t sectors = 0;           // global and local: 32-byte sectors, summed over executions
  uint64_t wavefronts = 0;        // shared: passes over the banks, summed over executions
  uint64_t bytes = 0;             // asked for by lanes
  uint64_t divergent = 0;         // branches at which a warp parted, collectives reached in pieces
};

// Of one direction (loads or stores) of one array.
struct ArrayTraffic {
  uint64_t requests = 0;  // by warps
  uint64_t bytes = 0;     // asked for by lanes
  uint64_t sectors = 0;   // of 32 bytes, distinct in each request
  uint64_t ideal = 0;     // sectors that the distinct bytes of each request would fill
  uint64_t l2 = 0;        // sectors after a first-level cache that each block has for itself
  uint64_t unique = 0;    // distinct sectors of the launch
};
struct ArrayCounters {
  int argument;  // which pointer of the call
  ArrayTraffic load, store;
};

struct LaunchCounters {
  const Kernel* kernel = nullptr;
  const Module* module = nullptr;
  const char* function = "";  // of the C API
  Dim3 grid, block;
  int dynamic_shared = 0;
  std::vector<InstCounters> inst;
  std::vector<ArrayCounters> arrays;
};

}  // namespace rf::ptx
