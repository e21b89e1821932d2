// Shape of masks as counts, 64 pixels at a time: a band of rows becomes bits in the L1 cache, where
// neighbours are shifts of the same or of another word, and population counts do the counting.
#include <algorithm>
#include <cstring>

#include "common/status.h"
#include "cpu/support/arena.h"
#include "cpu/support/bit_rows.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int kCounts = 5;

// Rows of bits, with one row above and below and a word before and after them. The last bit of a
// row is 0, so that none is carried from row to row.
struct Band {
  int64_t stride, rows;
  rf::Arena arena;
  uint64_t* words;

  Band(void* memory, int64_t h, int64_t w)
      : stride(w / 64 + 1),
        rows(std::min(h, std::max<int64_t>(1, 2048 / stride))),
        arena(memory),
        words(arena.take<uint64_t>((rows + 2) * stride + 2)) {}
  static int64_t bytes(int64_t h, int64_t w) { return Band(nullptr, h, w).arena.bytes(); }

  uint64_t* row(int64_t y) const { return words + 1 + (y + 1) * stride; }

  // Rows [y, y + count) of an image and their neighbours, those beyond the image as 0. Bytes of the
  // images that follow may be read, up to `end`.
  void read(const uint8_t* mask, const uint8_t* end, int64_t h, int64_t w, int64_t y,
            int64_t count) const {
    for (int64_t k = -1; k <= count; ++k) {
      uint64_t* to = row(k);
      to[stride - 1] = 0;
      if (y + k < 0 || y + k >= h) {
        std::fill(to, to + stride, 0);
      } else {
        rf::pack_bits(mask + (y + k) * w, w, end, to);
      }
    }
    row(-1)[-1] = row(count)[stride] = 0;
  }
};

struct Shape {
  int64_t removed = 0, alone4 = 0, alone8 = 0, starts = 0;  // starts: of runs, in rows and columns

  // `count` rows of a band.
  void add(const Band& band, int64_t count) {
    const auto left = [](const uint64_t* p) { return p[0] << 1 | p[-1] >> 63; };
    const auto right = [](const uint64_t* p) { return p[0] >> 1 | p[1] << 63; };
    for (const uint64_t *p = band.row(0), *end = band.row(count); p < end; ++p) {
      const uint64_t *up = p - band.stride, *down = p + band.stride;
      const uint64_t m = *p, before = left(p), four = *up | *down | before | right(p);
      const uint64_t eight = four | left(up) | right(up) | left(down) | right(down);
      removed += rf::count_bits(m);
      alone4 += rf::count_bits(m & ~four);
      alone8 += rf::count_bits(m & ~eight);
      starts += rf::count_bits(m & ~before) + rf::count_bits(m & ~*up);
    }
  }
};

int64_t count_row(const uint8_t* mask, int64_t w, int64_t step) {
  int64_t count = 0;
  for (int64_t x = 0; x < w; ++x) count += mask[x * step] != 0;
  return count;
}

void measure(const uint8_t* mask, const uint8_t* end, int64_t h, int64_t w, const Band& band,
             int64_t* out) {
  Shape shape;
  for (int64_t y = 0; y < h; y += band.rows) {
    const int64_t count = std::min(band.rows, h - y);
    band.read(mask, end, h, w, y, count);
    shape.add(band, count);
  }
  // A run has two ends; those at the border of the image are no pairs.
  const int64_t top = count_row(mask, w, 1), bottom = count_row(mask + (h - 1) * w, w, 1),
                left = count_row(mask, h, w), right = count_row(mask + w - 1, h, w);
  const auto at = [&](int64_t y, int64_t x) { return mask[y * w + x] != 0; };
  const int64_t corners = at(0, 0) + at(0, w - 1) + at(h - 1, 0) + at(h - 1, w - 1);
  const int64_t border = h == 1 ? top : w == 1 ? left : top + bottom + left + right - corners;
  const int64_t pairs = 2 * shape.starts - top - bottom - left - right;
  const int64_t counts[kCounts] = {shape.removed, shape.alone4, shape.alone8, pairs, border};
  std::copy(counts, counts + kCounts, out);
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
  const int64_t bytes = Band::bytes(h, w);
  rf::parallel_for(n, grain_of(h, w), [&](int64_t begin, int64_t end, int thread) {
    const Band band(static_cast<unsigned char*>(workspace) + thread * bytes, h, w);
    for (int64_t i = begin; i < end; ++i) {
      measure(mask + i * h * w, mask + n * h * w, h, w, band, out + kCounts * i);
    }
  });
  return RF_OK;
}

extern "C" int64_t rf_mask_geometry_workspace_bytes(int64_t n, int64_t h, int64_t w) {
  return Band::bytes(h, w) * rf::plan_threads(n, grain_of(h, w));
}
