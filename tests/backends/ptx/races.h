// Who touched which bytes of shared or global memory last, and when: two accesses race if nothing
// orders them, whichever came first in this run. So a race is found for every order of warps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rf::ptx {

enum class AccessKind { kRead, kReadOnlyCache, kWrite, kAtomic };

// When and by whom. Epochs count the block's barriers (and block starts), warp epochs its
// __syncwarp(): shuffles and votes do not order memory.
struct Moment {
  uint32_t epoch = 0, warp_epoch = 0;
  uint32_t block = 0;
  uint16_t thread = 0;
};

// The accesses so far of a few bytes.
struct Cell {
  Moment write, read;  // the last ones; epoch 0: none
  bool atomic = false;
  bool read_by_lanes = false, read_by_warps = false;  // several, in the epoch of `read`
  bool read_by_blocks = false;                        // several, in this launch
};

class Shadow {
 public:
  // What is wrong with this access, or null. Accesses before epoch `since` are forgotten;
  // `initialised`: what was not written since then may be read all the same.
  const char* check(uint64_t offset, int bytes, size_t memory_bytes, const Moment& now,
                    uint32_t since, AccessKind kind, bool changes, bool initialised);
  // A sentence about what the last check found: `wrong` and the other thread.
  std::string explain(const char* wrong, const Moment& now) const;

 private:
  int cell_bytes_ = 0;  // the smallest access so far; accesses are aligned, so it divides all
  std::vector<Cell> cells_;
  Moment other_;  // of what the last check found

  void refine(int bytes, size_t memory_bytes);
};

}  // namespace rf::ptx
