// Shape of masks as counts. Every row is compared with its neighbours byte by byte, and the bytes
// are added up in counters of one byte per column, which a vector holds many of; they are emptied
// before they can overflow.
#include <algorithm>
#include <cstring>

#include "common/status.h"
#include "cpu/support/arena.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int kCounts = 5, kMaxAdded = 120;  // pairs add up to 2 per row to a byte

struct Scratch {
  rf::Arena arena;
  uint8_t* rows[3];            // [w + 2]: a row as 0 and 1, with a 0 at either end
  uint8_t* counters[kCounts];  // [w]

  Scratch(void* memory, int64_t w) : arena(memory) {
    for (uint8_t*& row : rows) row = arena.take<uint8_t>(w + 2);
    for (uint8_t*& counter : counters) counter = arena.take<uint8_t>(w);
  }
  static int64_t bytes(int64_t w) { return Scratch(nullptr, w).arena.bytes(); }
};

__attribute__((noinline)) void read_row(const uint8_t* mask, int64_t w, uint8_t* row) {
  for (int64_t x = 0; x < w; ++x) row[x + 1] = mask[x] != 0;
}

// up, here, down point at column 0 and may be read from -1 to w.
__attribute__((noinline)) void add_row(const uint8_t* __restrict up, const uint8_t* __restrict here,
                                       const uint8_t* __restrict down, int64_t w,
                                       uint8_t inner_down, uint8_t* __restrict removed,
                                       uint8_t* __restrict alone4, uint8_t* __restrict alone8,
                                       uint8_t* __restrict pairs) {
  for (int64_t x = 0; x < w; ++x) {
    const uint8_t m = here[x];
    const uint8_t four = up[x] | down[x] | here[x - 1] | here[x + 1];
    const uint8_t eight = four | up[x - 1] | up[x + 1] | down[x - 1] | down[x + 1];
    removed[x] += m;
    alone4[x] += static_cast<uint8_t>(m & (four ^ 1));
    alone8[x] += static_cast<uint8_t>(m & (eight ^ 1));
    pairs[x] += static_cast<uint8_t>((m ^ here[x + 1]) + ((m ^ down[x]) & inner_down));
  }
}

int64_t total(const uint8_t* counter, int64_t w) {
  int64_t sum = 0;
  for (int64_t x = 0; x < w; ++x) sum += counter[x];
  return sum;
}

void measure(const uint8_t* mask, int64_t h, int64_t w, Scratch& scratch, int64_t* out) {
  std::fill(out, out + kCounts, 0);
  uint8_t *up = scratch.rows[0], *here = scratch.rows[1], *down = scratch.rows[2];
  for (uint8_t* row : scratch.rows) std::memset(row, 0, w + 2);
  for (uint8_t* counter : scratch.counters) std::memset(counter, 0, w);
  const auto flush = [&] {
    for (int k = 0; k < 4; ++k) {
      out[k] += total(scratch.counters[k], w);
      std::memset(scratch.counters[k], 0, w);
    }
  };
  read_row(mask, w, here);
  for (int64_t y = 0; y < h; ++y) {
    const bool last = y + 1 == h;
    last ? void(std::memset(down, 0, w + 2)) : read_row(mask + (y + 1) * w, w, down);
    add_row(up + 1, here + 1, down + 1, w, last ? 0 : 1, scratch.counters[0], scratch.counters[1],
            scratch.counters[2], scratch.counters[3]);
    out[3] -= here[w];  // the last column has no right neighbour
    out[4] += y == 0 || last ? total(here + 1, w) : here[1] + (w > 1 ? here[w] : 0);
    if (y % kMaxAdded == kMaxAdded - 1) flush();
    std::swap(up, here);
    std::swap(here, down);
  }
  flush();
}

int64_t grain_of(int64_t h, int64_t w) {
  return std::max<int64_t>(1, 65536 / std::max<int64_t>(h * w, 1));
}

}  // namespace

extern "C" rf_status rf_mask_geometry(const uint8_t* mask, int64_t* out, int64_t n, int64_t h,
                                      int64_t w, void* workspace, rf_stream) {
  if (h * w == 0) {
    std::fill(out, out + kCounts * n, 0);
    return RF_OK;
  }
  const int64_t bytes = Scratch::bytes(w);
  rf::parallel_for(n, grain_of(h, w), [&](int64_t begin, int64_t end, int thread) {
    Scratch scratch(static_cast<unsigned char*>(workspace) + thread * bytes, w);
    for (int64_t i = begin; i < end; ++i) {
      measure(mask + i * h * w, h, w, scratch, out + kCounts * i);
    }
  });
  return RF_OK;
}

extern "C" int64_t rf_mask_geometry_workspace_bytes(int64_t n, int64_t h, int64_t w) {
  return Scratch::bytes(w) * rf::plan_threads(n, grain_of(h, w));
}
