// What the separable CPU filters share: cutting a batch into bands of rows,
// and rows with a border around them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "common/border.h"
#include "common/dtype.h"
#include "cpu/support/arena.h"
#include "cpu/support/parallel.h"
#include "cpu/support/simd.h"
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace rf {

// Work items of a filter: bands of `rows` rows. A band and its halo should stay in a 512 KB L2
// cache, and be much taller than the halo, whose rows are fetched again by the next band.
struct Bands {
  int64_t rows, per_image, total, grain;
  int threads;
};

inline Bands plan_bands(int64_t n, int64_t h, int64_t w, int64_t halo) {
  constexpr int64_t kBandPixels = 64 * 1024, kGrainPixels = 16 * 1024, kMinRows = 16;
  const int64_t smallest = std::max(kMinRows, 2 * halo);
  int64_t rows = std::max(smallest, kBandPixels / std::max<int64_t>(w, 1));
  const int64_t items_wanted = 4 * static_cast<int64_t>(rf_get_num_threads());
  if (n * ((h + rows - 1) / rows) < items_wanted) {
    rows = std::max(smallest, (n * h + items_wanted - 1) / items_wanted);
  }
  rows = std::max<int64_t>(1, std::min(rows, h));
  Bands b;
  b.rows = rows;
  b.per_image = (h + rows - 1) / rows;
  b.total = n * b.per_image;
  // Runs of bands, so that what is prefetched beyond the end of one is used by the same core; but
  // enough runs to even out the threads.
  constexpr int64_t kRunsPerThread = 16;
  b.grain = std::max<int64_t>({1, kGrainPixels / std::max<int64_t>(1, rows * w),
                               b.total / (kRunsPerThread * rf_get_num_threads())});
  b.threads = plan_threads(b.total, b.grain);
  return b;
}

// How many rows a filter takes through its first pass before the second: the second pass loads at
// other alignments than the first stored, so a row just written would stall it; 1024 pixels stay in
// the L1 cache.
inline int64_t group_rows(int64_t w) { return std::max<int64_t>(1, 1024 / w); }

// Calls body(image, first row, row count, thread) for every band, in parallel.
template <typename Body>
void for_bands(const Bands& bands, int64_t h, const Body& body) {
  parallel_for(bands.total, bands.grain, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t y = item % bands.per_image * bands.rows;
      body(item / bands.per_image, y, std::min(bands.rows, h - y), thread);
    }
  });
}

// Storage row -> compute row and back. F16C has no portable spelling that GCC 12 vectorises.
template <typename T>
void load_row(const T* src, compute_t<T>* dst, int64_t w) {
  int64_t x = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, half_t>) {
    for (; x + 8 <= w; x += 8) {
      _mm256_storeu_ps(dst + x,
                       _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(src + x))));
    }
  }
#endif
  for (; x < w; ++x) dst[x] = load(src[x]);
}
template <typename T>
void store_row(const compute_t<T>* src, T* dst, int64_t w) {
  int64_t x = 0;
#if defined(__F16C__)
  if constexpr (std::is_same_v<T, half_t>) {
    for (; x + 8 <= w; x += 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + x),
                       _mm256_cvtps_ph(_mm256_loadu_ps(src + x), _MM_FROUND_TO_NEAREST_INT));
    }
  }
#endif
  for (; x < w; ++x) dst[x] = store<T>(src[x]);
}

// Rows of the working type W for rows [y, y + count) of an image extended by its border: rows[j]
// points into the image itself where T is W, else into `converted`, filled here by convert(source
// row, destination). `converted` holds min(count, h) rows; `constant_row` is what RF_CONSTANT puts
// beyond the border.
template <typename T, typename W, typename Convert>
void extended_rows(const T* image, int64_t h, int64_t w, int64_t y, int64_t count, rf_border mode,
                   const W* constant_row, W* converted, const W** rows, const Convert& convert) {
  const bool whole_image = count >= h;
  if constexpr (!std::is_same_v<T, W>) {
    if (whole_image) {
      for (int64_t r = 0; r < h; ++r) convert(image + r * w, converted + r * w);
    }
  }
  for (int64_t j = 0; j < count; ++j) {
    const int64_t source = border_index(y + j, h, mode);
    if (source < 0) {
      rows[j] = constant_row;
    } else if constexpr (std::is_same_v<T, W>) {
      rows[j] = image + source * w;
    } else if (whole_image) {
      rows[j] = converted + source * w;
    } else {
      convert(image + source * w, converted + j * w);
      rows[j] = converted + j * w;
    }
  }
}

// The columns beyond the left and right border, as indices into the row (-1: the constant).
class RowBorder {
 public:
  RowBorder(Arena& arena, int64_t w, int64_t before, int64_t after)
      : w_(w), before_(before), after_(after), source_(arena.take<int64_t>(before + after)) {}
  void plan(rf_border mode) {
    mode_ = mode;
    for (int64_t i = 0; i < before_; ++i) source_[i] = border_index(i - before_, w_, mode);
    for (int64_t i = 0; i < after_; ++i) source_[before_ + i] = border_index(w_ + i, w_, mode);
  }
  // row[before, before + w) is given; fills [0, before) and [before + w, before + w + after).
  template <typename W>
  void extend(W* row, W constant) const {
    const W* inside = row + before_;
    W* right = row + before_ + w_;
    // Long borders that reflect once are copied backwards in whole vectors, the last of which
    // overlaps its predecessor; others follow the indices.
    using V = vector_t<W>;
    constexpr int64_t kLanes = Vector<W>::kLanes;
    const int64_t shorter = std::min(before_, after_), longer = std::max(before_, after_);
    if (mode_ == RF_REFLECT && shorter >= kLanes && longer <= w_) {
      for (int64_t i = 0; i < before_; i += kLanes) {
        const int64_t from = std::min(i, before_ - kLanes);
        store_as(row + before_ - kLanes - from, reversed(load_as<V>(inside + from)));
      }
      for (int64_t i = 0; i < after_; i += kLanes) {
        const int64_t to = std::min(i, after_ - kLanes);
        store_as(right + to, reversed(load_as<V>(inside + w_ - kLanes - to)));
      }
      return;
    }
    const int64_t* source = source_ + before_;
    for (int64_t i = 0; i < before_; ++i) row[i] = source_[i] < 0 ? constant : inside[source_[i]];
    for (int64_t i = 0; i < after_; ++i) right[i] = source[i] < 0 ? constant : inside[source[i]];
  }
  // extend() of `count` rows that are `stride` apart. kWidth > 0 is the width of both borders,
  // known when compiling: a reflected one is then a shuffle.
  template <int kWidth, typename W>
  void extend_rows(W* row, int64_t stride, int64_t count, W constant) const {
    if (kWidth == 0 || mode_ != RF_REFLECT || w_ < kWidth) {
      for (int64_t r = 0; r < count; ++r) extend(row + r * stride, constant);
      return;
    }
    for (int64_t r = 0; r < count; ++r, row += stride) {
      W *inside = row + kWidth, *right = inside + w_;
      for (int i = 0; i < kWidth; ++i) row[i] = inside[kWidth - 1 - i];
      for (int i = 0; i < kWidth; ++i) right[i] = right[-1 - i];
    }
  }
  int64_t before() const { return before_; }
  int64_t width() const { return before_ + w_ + after_; }

 private:
  int64_t w_, before_, after_;
  int64_t* source_;
  rf_border mode_ = RF_REFLECT;
};

}  // namespace rf
