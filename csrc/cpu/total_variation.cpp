// Total variation on the CPU: one pass over the pixels, in the summation order of
// common/total_variation.h. A band's 32 columns are 8 short rows in the L1 cache; each is loaded as
// the lower neighbour of the one above.
#include "common/total_variation.h"

#include "cpu/support/rows.h"
#include "cpu/support/simd.h"

namespace {

constexpr int kLanes = rf::kTvLanes;
constexpr int kRows = rf::kTvBandRows;

template <typename C>
struct LaneSums {
  double sum[kLanes];
  C low[kLanes], high[kLanes];
};

// Lanes are taken as many at a time as a vector has doubles.
constexpr int kWidth = rf::kVectorBytes / static_cast<int>(sizeof(double));
using Doubles = rf::vector_t<double>;

template <bool kIsotropic, typename V>
__attribute__((always_inline)) inline Doubles terms(V across, V down) {
  if constexpr (kIsotropic) {
    const Doubles a = rf::to_doubles(across), d = rf::to_doubles(down);
    Doubles t = a * a + d * d;
    for (int i = 0; i < kWidth; ++i) t[i] = std::sqrt(t[i]);
    return t;
  } else {
    return rf::to_doubles(rf::abs_of(across) + rf::abs_of(down));
  }
}

// The right neighbours of the last pixels of a row: the last has none and stands for itself.
template <typename V, int... kLane>
__attribute__((always_inline)) inline V shifted_with_edge(V v,
                                                          std::integer_sequence<int, kLane...>) {
  return rf::shuffle<(kLane + 1 < kWidth ? kLane + 1 : kLane)...>(v, v);
}

// Adds a block of `rows` x 32 pixels; right[l] is the right neighbour of here[l] (kEdge: the last
// lane has none, and right[31] is not read), row r + 1 the lower one of row r. The row after the
// last is read too.
template <bool kIsotropic, bool kRange, bool kEdge, typename C>
void add_block(const C* here, const C* right, int64_t stride, int64_t rows, LaneSums<C>& lanes) {
  using V = rf::vector_t<C, kWidth * sizeof(C)>;
  using Lanes = std::make_integer_sequence<int, kWidth>;
  constexpr int kAtOnce =
      kLanes / kWidth < 4 ? kLanes / kWidth : 4;  // sums and rows that fit in registers
  for (int l = 0; l < kLanes; l += kAtOnce * kWidth) {
    Doubles sum[kAtOnce];
    V low[kAtOnce], high[kAtOnce], value[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const int lane = l + i * kWidth;
      sum[i] = rf::load_as<Doubles>(lanes.sum + lane);
      if constexpr (kRange) {
        low[i] = rf::load_as<V>(lanes.low + lane);
        high[i] = rf::load_as<V>(lanes.high + lane);
      }
      value[i] = rf::load_as<V>(here + lane);
    }
    const C *next = right + l, *below = here + stride + l;
    for (int64_t r = 0; r < rows; ++r, next += stride, below += stride) {
      for (int i = 0; i < kAtOnce; ++i) {
        const V down = rf::load_as<V>(below + i * kWidth);
        const bool at_edge = kEdge && l + (i + 1) * kWidth == kLanes;
        const V beside =
            at_edge ? shifted_with_edge(value[i], Lanes{}) : rf::load_as<V>(next + i * kWidth);
        sum[i] += terms<kIsotropic>(beside - value[i], down - value[i]);
        if constexpr (kRange) {
          low[i] = value[i] < low[i] ? value[i] : low[i];
          high[i] = value[i] > high[i] ? value[i] : high[i];
        }
        value[i] = down;
      }
    }
    for (int i = 0; i < kAtOnce; ++i) {
      const int lane = l + i * kWidth;
      rf::store_as(lanes.sum + lane, sum[i]);
      if constexpr (kRange) {
        rf::store_as(lanes.low + lane, low[i]);
        rf::store_as(lanes.high + lane, high[i]);
      }
    }
  }
}

// Asks for a block of the next band: a row of a block is two cache lines, too short a stretch for
// the processor to foresee what comes next (1.6 times as fast at 256x224x224).
template <typename T>
void ask_for_block(const T* block, int64_t stride) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t r = 0; r < kRows; ++r, block += stride) {
    for (int64_t x = 0; x < kLanes; x += kLine) __builtin_prefetch(block + x);
  }
}

// One band of an image: `rows` rows from `band` on,
// and the row below them unless they are the last.
template <bool kIsotropic, bool kRange, typename T>
rf::TvPartial sum_band(const T* band, int64_t rows, bool has_row_below, int64_t w) {
  using C = rf::compute_t<T>;
  LaneSums<C> lanes;
  for (int l = 0; l < kLanes; l += kWidth) rf::store_as(lanes.sum + l, Doubles{});
  if constexpr (kRange) {
    for (int l = 0; l < kLanes; ++l) lanes.low[l] = lanes.high[l] = rf::load(band[0]);
  }
  // Rows with a row below them, then, in the last band,
  // the one that stands for its own: difference 0.
  const int64_t upper = has_row_below ? rows : rows - 1;
  int64_t x = 0;
  if constexpr (std::is_same_v<T, C>) {
    const T* last = band + upper * w;
    for (; x + kLanes < w; x += kLanes) {
      ask_for_block(band + kRows * w + x, w);
      add_block<kIsotropic, kRange, false>(band + x, band + x + 1, w, upper, lanes);
      if (upper < rows) add_block<kIsotropic, kRange, false>(last + x, last + x + 1, 0, 1, lanes);
    }
    if (x + kLanes == w) {
      ask_for_block(band + kRows * w + x, w);
      add_block<kIsotropic, kRange, true>(band + x, band + x + 1, w, upper, lanes);
      if (upper < rows) add_block<kIsotropic, kRange, true>(last + x, last + x + 1, 0, 1, lanes);
      x = w;
    }
  }
  // Blocks that need converting or touch an edge, where a missing neighbour repeats the pixel:
  // difference 0. Lanes beyond the last column hold the band's first pixel everywhere: no
  // difference and no new extreme.
  C here[kRows + 1][kLanes], right[kRows + 1][kLanes];
  for (; x < w; x += kLanes) {
    ask_for_block(band + kRows * w + x, w);
    const int64_t count = std::min<int64_t>(kLanes, w - x),
                  next = std::min<int64_t>(kLanes, w - x - 1);
    if (count < kLanes) {
      for (auto& row : here) std::fill(row, row + kLanes, rf::load(band[0]));
      for (auto& row : right) std::fill(row, row + kLanes, rf::load(band[0]));
    }
    for (int64_t r = 0; r < rows; ++r) {
      const T* row = band + r * w + x;
      rf::load_row(row, here[r], count);
      rf::load_row(row + 1, right[r], next);
      if (next < count) right[r][next] = here[r][next];
    }
    rf::load_row(band + upper * w + x, here[rows], count);
    add_block<kIsotropic, kRange, false>(here[0], right[0], kLanes, rows, lanes);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      lanes.sum[l] += lanes.sum[l + half];
      if constexpr (kRange) {
        lanes.low[l] = std::min(lanes.low[l], lanes.low[l + half]);
        lanes.high[l] = std::max(lanes.high[l], lanes.high[l + half]);
      }
    }
  }
  if constexpr (!kRange) return {lanes.sum[0], 0.0, 0.0};
  return {lanes.sum[0], static_cast<double>(lanes.low[0]), static_cast<double>(lanes.high[0])};
}

}  // namespace

extern "C" rf_status rf_total_variation(const void* in, double* out, rf_dtype dtype, int64_t n,
                                        int64_t h, int64_t w, rf_tv_kind kind, rf_tv_norm norm,
                                        void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_tv(in, out, n, h, w, kind, norm)) return bad;
  if (h * w == 0) {
    for (int64_t i = 0; i < n; ++i) out[i] = 0.0;
    return RF_OK;
  }
  const int64_t bands = rf::tv_bands(h);
  auto* partials = static_cast<rf::TvPartial*>(workspace);
  const bool known = rf::dispatch_tv(dtype, kind, norm, [&](auto tag, auto isotropic, auto range) {
    using T = typename decltype(tag)::type;
    constexpr int64_t kGrainPixels = 32 * 1024;
    const int64_t grain = std::max<int64_t>(1, kGrainPixels / (kRows * w));
    rf::parallel_for(n * bands, grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t y = item % bands * kRows, rows = std::min<int64_t>(kRows, h - y);
        const T* band = static_cast<const T*>(in) + (item / bands * h + y) * w;
        partials[item] = sum_band<isotropic.value, range.value>(band, rows, y + rows < h, w);
      }
    });
  });
  if (!known) return rf::fail_dtype("total_variation", dtype);
  for (int64_t i = 0; i < n; ++i)
    out[i] = rf::tv_finish(partials + i * bands, bands, h, w, kind, norm);
  return RF_OK;
}

extern "C" int64_t rf_total_variation_workspace_bytes(rf_dtype, int64_t n, int64_t h, int64_t) {
  return n * rf::tv_bands(h) * static_cast<int64_t>(sizeof(rf::TvPartial));
}
