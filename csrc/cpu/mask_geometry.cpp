// Shape of masks as counts, 256 pixels at a time: a band of rows becomes bits in the L1 cache,
// where neighbours are shifts of the same or of other words. Bits are counted in the bytes of
// vectors: five population counts per word would take longer than all the rest.
#include <algorithm>
#include <cstring>

#include "common/status.h"
#include "cpu/support/arena.h"
#include "cpu/support/bit_rows.h"
#include "cpu/support/parallel.h"
#include "cpu/support/simd.h"

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

using Words = rf::vector_t<uint64_t>;
constexpr int kWords = rf::Vector<uint64_t>::kLanes;

// Counts the bits of vectors in the bytes of one, up to 8 in each byte with every vector.
struct BitCount {
  static constexpr int kMost = 31;  // vectors before `total`
  Words bytes = {};

  __attribute__((always_inline)) void add(Words v) { bytes += rf::byte_counts(v); }
  int64_t total() const {
    const Words pairs = (bytes & 0x00ff00ff00ff00ffu) + (bytes >> 8 & 0x00ff00ff00ff00ffu);
    int64_t sum = 0;
    for (int lane = 0; lane < kWords; ++lane) sum += pairs[lane] * 0x0001000100010001u >> 48;
    return sum;
  }
};

struct Shape {
  int64_t removed = 0, alone4 = 0, alone8 = 0, starts = 0;  // starts: of runs, in rows and columns

  // `count` rows of a band.
  void add(const Band& band, int64_t count) {
    const uint64_t *p = band.row(0), *const end = band.row(count);
    while (p + kWords <= end) {
      BitCount all, single4, single8, in_row, in_column;
      const int64_t most = std::min<int64_t>(BitCount::kMost, (end - p) / kWords);
      for (const uint64_t* stop = p + most * kWords; p < stop; p += kWords) {
        const Around<Words> around(p, band.stride);
        all.add(around.m);
        single4.add(around.alone4());
        single8.add(around.alone8());
        in_row.add(around.row_start());
        in_column.add(around.column_start());
      }
      removed += all.total(), alone4 += single4.total(), alone8 += single8.total();
      starts += in_row.total() + in_column.total();
    }
    for (; p < end; ++p) {
      const Around<uint64_t> around(p, band.stride);
      removed += rf::count_bits(around.m);
      alone4 += rf::count_bits(around.alone4());
      alone8 += rf::count_bits(around.alone8());
      starts += rf::count_bits(around.row_start()) + rf::count_bits(around.column_start());
    }
  }

 private:
  // Words of a band and their neighbours.
  template <typename V>
  struct Around {
    V m, before, up, four, eight;

    __attribute__((always_inline)) Around(const uint64_t* p, int64_t stride)
        : m(rf::load_as<V>(p)), before(left(p)), up(rf::load_as<V>(p - stride)) {
      const uint64_t *above = p - stride, *below = p + stride;
      four = up | rf::load_as<V>(below) | before | right(p);
      eight = four | left(above) | right(above) | left(below) | right(below);
    }
    V alone4() const { return m & ~four; }
    V alone8() const { return m & ~eight; }
    V row_start() const { return m & ~before; }
    V column_start() const { return m & ~up; }

    static V left(const uint64_t* p) {
      return rf::load_as<V>(p) << 1 | rf::load_as<V>(p - 1) >> 63;
    }
    static V right(const uint64_t* p) {
      return rf::load_as<V>(p) >> 1 | rf::load_as<V>(p + 1) << 63;
    }
  };
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
