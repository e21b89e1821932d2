// Exact squared Euclidean distances to the nearest False pixel. Two passes down and up the columns
// give the distance within a column, whole rows at a time. Then every row takes the minimum of
// (distance in column x + d)^2 + d^2 over the offsets d = 0, 1, 2, ..., for all its pixels
// together, until d^2 reaches the largest distance left in the row: few offsets where False
// pixels are near. Rows with far ones find the lower envelope of the parabolas instead (Meijster,
// Roerdink and Hesselink), whose cost does not depend on distances.
#include "common/distance_transform.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/support/arena.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int32_t kNone = 1 << 15;         // no False pixel in the column; above any distance
constexpr int32_t kNoneSquared = 1 << 30;  // its square
constexpr int64_t kPad = 64;               // columns beyond the row that offsets may read
constexpr int64_t kFarOffsets = 48;        // more offsets than this: the envelope is cheaper

struct Scratch {
  rf::Arena arena;
  int32_t* column;   // [h, w]: distances within columns
  int32_t* squares;  // [w + 2 kPad]: their squares in one row
  int32_t* best;     // [w]
  int32_t* site;     // [w]: columns whose parabolas make up the envelope
  int32_t* from;     // [w]: where they begin

  Scratch(void* memory, int64_t h, int64_t w) : arena(memory) {
    column = arena.take<int32_t>(h * w);
    squares = arena.take<int32_t>(w + 2 * kPad);
    best = arena.take<int32_t>(w + kPad);
    site = arena.take<int32_t>(w);
    from = arena.take<int32_t>(w);
  }
  static int64_t bytes(int64_t h, int64_t w) { return Scratch(nullptr, h, w).arena.bytes(); }
};

// column[y, x]: rows to the nearest False pixel above or below, at most kNone.
// Returns whether there is one.
__attribute__((noinline)) bool column_distances(const uint8_t* mask, int64_t h, int64_t w,
                                                int32_t* column) {
  int32_t any = 0;
  for (int64_t y = 0; y < h; ++y) {
    int32_t* row = column + y * w;
    const uint8_t* here = mask + y * w;
    const int32_t* above = y > 0 ? row - w : nullptr;
    for (int64_t x = 0; x < w; ++x) {
      const int32_t further = above ? above[x] + 1 : kNone;
      row[x] = here[x] ? (further < kNone ? further : kNone) : 0;
      any |= here[x] == 0;
    }
  }
  for (int64_t y = h - 2; y >= 0; --y) {
    int32_t* row = column + y * w;
    const int32_t* below = row + w;
    for (int64_t x = 0; x < w; ++x) {
      const int32_t further = below[x] + 1;
      row[x] = further < row[x] ? further : row[x];
    }
  }
  return any != 0;
}

__attribute__((noinline)) int32_t square_row(const int32_t* column, int64_t w, int32_t* squares,
                                             int32_t* best) {
  int32_t most = 0;
  for (int64_t x = 0; x < w; ++x) {
    const int32_t d = column[x], square = d >= kNone ? kNoneSquared : d * d;
    squares[x] = best[x] = square;
    most = square > most ? square : most;
  }
  return most;
}

// One offset for the whole row; the largest distance that is left.
__attribute__((noinline)) int32_t take_offset(const int32_t* squares, int64_t w, int32_t d,
                                              int32_t* best) {
  const int32_t square = d * d;
  const int32_t *left = squares - d, *right = squares + d;
  int32_t most = 0;
  for (int64_t x = 0; x < w; ++x) {
    const int32_t nearer = left[x] < right[x] ? left[x] : right[x];
    const int32_t candidate = nearer + square;
    const int32_t b = candidate < best[x] ? candidate : best[x];
    best[x] = b;
    most = b > most ? b : most;
  }
  return most;
}

// The first column at which the parabola of u is below that of i < u.
int32_t crossing(const int32_t* squares, int64_t i, int64_t u) {
  const int64_t numerator = u * u - i * i + squares[u] - squares[i], denominator = 2 * (u - i);
  const int64_t down =
      numerator >= 0 ? numerator / denominator : -((-numerator + denominator - 1) / denominator);
  return static_cast<int32_t>(std::clamp<int64_t>(down + 1, -1, INT_MAX));
}

void envelope(const int32_t* squares, int64_t w, int32_t* site, int32_t* from, int32_t* best) {
  int64_t count = 0;
  for (int64_t u = 0; u < w; ++u) {
    if (squares[u] >= kNoneSquared) continue;
    int32_t begin = 0;
    while (count > 0) {
      begin = std::max(0, crossing(squares, site[count - 1], u));
      if (begin > from[count - 1]) break;
      --count;
    }
    if (count == 0) begin = 0;
    if (begin >= w) continue;
    site[count] = static_cast<int32_t>(u);
    from[count++] = begin;
  }
  for (int64_t k = 0; k < count; ++k) {
    const int64_t end = k + 1 < count ? from[k + 1] : w;
    for (int64_t x = from[k]; x < end; ++x) {
      const int64_t d = x - site[k];
      best[x] = static_cast<int32_t>(d * d + squares[site[k]]);
    }
  }
}

void row_distances(const int32_t* column, int64_t w, Scratch& scratch) {
  int32_t* squares = scratch.squares + kPad;
  int32_t most = square_row(column, w, squares, scratch.best);
  for (int32_t d = 1; d < w && static_cast<int64_t>(d) * d < most; ++d) {
    if (d >= kFarOffsets) return envelope(squares, w, scratch.site, scratch.from, scratch.best);
    most = take_offset(squares, w, d, scratch.best);
  }
}

__attribute__((noinline)) void store_roots(const int32_t* squares, int64_t w, float* out) {
  for (int64_t x = 0; x < w; ++x) out[x] = std::sqrt(static_cast<float>(squares[x]));
}

}  // namespace

extern "C" rf_status rf_distance_transform(const uint8_t* mask, void* out, int64_t n, int64_t h,
                                           int64_t w, int root, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_distance_transform(n, h, w)) return bad;
  if (h * w == 0) return RF_OK;
  const int64_t bytes = Scratch::bytes(h, w);
  const int64_t grain = std::max<int64_t>(1, 16384 / (h * w));
  rf::parallel_for(n, grain, [&](int64_t begin, int64_t end, int thread) {
    Scratch scratch(static_cast<unsigned char*>(workspace) + thread * bytes, h, w);
    std::fill(scratch.squares, scratch.squares + w + 2 * kPad, kNoneSquared);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * h * w;
      if (!column_distances(mask + first, h, w, scratch.column)) {
        if (root) {
          float* to = static_cast<float*>(out) + first;
          std::fill(to, to + h * w, std::numeric_limits<float>::infinity());
        } else {
          int32_t* to = static_cast<int32_t*>(out) + first;
          std::fill(to, to + h * w, INT32_MAX);
        }
        continue;
      }
      for (int64_t y = 0; y < h; ++y) {
        row_distances(scratch.column + y * w, w, scratch);
        if (root) {
          store_roots(scratch.best, w, static_cast<float*>(out) + first + y * w);
        } else {
          std::memcpy(static_cast<int32_t*>(out) + first + y * w, scratch.best,
                      w * sizeof(int32_t));
        }
      }
    }
  });
  return RF_OK;
}

extern "C" int64_t rf_distance_transform_workspace_bytes(int64_t n, int64_t h, int64_t w) {
  if (h * w == 0) return 0;
  return Scratch::bytes(h, w) * rf::plan_threads(n, std::max<int64_t>(1, 16384 / (h * w)));
}
