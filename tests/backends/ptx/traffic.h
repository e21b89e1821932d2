// Counts what the memory system would do for one request of a warp.
#pragma once

#include "machine.h"

namespace rf::ptx {

// Addresses as `resolve` gave them: places[lane] of the lanes in `mask`, all in one space.
void count_global(Warp& warp, const Place* places, uint32_t mask, int bytes, bool write);
void count_shared(Warp& warp, const Place* places, uint32_t mask, int bytes);
// Lanes that change one address take turns.
void count_atomic(Warp& warp, const Place* places, uint32_t mask, int bytes);
void count_local(Warp& warp, uint32_t mask, int bytes);

}  // namespace rf::ptx
