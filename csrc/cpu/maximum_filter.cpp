// Maximum filter on the CPU: per output row, the maximum over the window's rows into one row in the
// L1 cache, its border, and the maximum over the window's columns from there to the output.
//
// Rows: small windows directly; larger ones by van Herk / Gil-Werman, three maxima per pixel
// whatever the size. Columns: windows of 4, 16, 64 ... pixels grown in place, then up to four of
// them cover the window.
#include "common/filter_args.h"
#include "common/max_window.h"
#include "cpu/rows.h"
#include "cpu/simd.h"

namespace {

constexpr int64_t kDirectRows =
    8;  // up to here reading every row beats van Herk (224x224 float32, Zen 3)

// dst[x] = the maximum of taps(0)[x] ... taps(count - 1)[x].
template <typename C, typename Taps>
struct MaxOfTaps {
  const Taps& taps;
  int64_t count;
  C* dst;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    V best[K];
    const C* first = taps(0) + x;
    for (int i = 0; i < K; ++i) best[i] = rf::load_as<V>(first + i * kStep);
    for (int64_t k = 1; k < count; ++k) {
      const C* tap = taps(k) + x;
      for (int i = 0; i < K; ++i) best[i] = rf::max_of(rf::load_as<V>(tap + i * kStep), best[i]);
    }
    for (int i = 0; i < K; ++i) rf::store_as(dst + x + i * kStep, best[i]);
  }
};

template <typename C, typename Taps>
void max_of_taps(const Taps& taps, int64_t count, C* dst, int64_t w) {
  rf::for_vectors<C>(w, MaxOfTaps<C, Taps>{taps, count, dst});
}

template <typename C>
void copy_row(const C* src, C* dst, int64_t w) {
  max_of_taps([src](int64_t) { return src; }, 1, dst, w);
}

template <typename C>
void max_of_two(const C* a, const C* b, C* dst, int64_t w) {
  max_of_taps([a, b](int64_t k) { return k == 0 ? a : b; }, 2, dst, w);
}

// dst[x] = the maximum of row[x] ... row[x + size - 1]; row has `width` values and is overwritten.
template <typename C>
void max_along_row(C* row, int64_t width, int64_t size, C* dst, int64_t w) {
  int64_t covered = 1;  // row[x] is the maximum of this many pixels from x on
  while (4 * covered < size) {
    width -= 3 * covered;
    // In place: value x needs only values from x on. The scratch row has room for the overhang of a
    // vector.
    using V = rf::vector_t<C>;
    for (int64_t x = 0; x < width; x += rf::Vector<C>::kLanes) {
      const V a = rf::load_as<V>(row + x), b = rf::load_as<V>(row + x + covered);
      const V c = rf::load_as<V>(row + x + 2 * covered), d = rf::load_as<V>(row + x + 3 * covered);
      rf::store_as(row + x, rf::max_of(rf::max_of(a, b), rf::max_of(c, d)));
    }
    covered *= 4;
  }
  const int64_t count = (size + covered - 1) / covered, last = size - covered;
  const auto taps = [=](int64_t k) { return row + std::min(k * covered, last); };
  switch (count) {  // constants, so that the loop over taps unrolls
    case 1:
      return max_of_taps(taps, 1, dst, w);
    case 2:
      return max_of_taps(taps, 2, dst, w);
    case 3:
      return max_of_taps(taps, 3, dst, w);
    default:
      return max_of_taps(taps, 4, dst, w);
  }
}

template <typename T>
struct Plan {
  using C = rf::max_key_t<T>;
  static constexpr bool kNative = std::is_same_v<T, C>;

  struct Scratch {  // of one thread
    const C** rows;
    C *converted, *suffix, *prefix, *column_max, *result;
  };

  Plan(void* workspace, int64_t n, int64_t h, int64_t w, int64_t size_y, int64_t size_x)
      : window_y(rf::max_window(size_y, h)),
        window_x(rf::max_window(size_x, w)),
        arena(workspace),
        bands(rf::plan_bands(n, h, w, window_y.size() / 2)),
        border(arena, w, window_x.before, window_x.after),
        constant_row(arena.take<C>(w)),
        extended_rows(bands.rows + window_y.size() - 1),
        converted_rows(kNative ? 0 : std::min(h, extended_rows)),
        suffix_rows(window_y.size() > kDirectRows ? std::min(window_y.size(), bands.rows) : 0),
        first_scratch(arena),
        w(w) {
    for (int t = 0; t < bands.threads; ++t) take_scratch(arena);
  }

  // Of the rows with borders; max_along_row runs over the end by less than a vector.
  int64_t stride() const { return border.width() + rf::kVectorBytes; }

  Scratch take_scratch(rf::Arena& from) const {
    Scratch s;
    s.rows = from.take<const C*>(extended_rows);
    s.converted = from.take<C>(converted_rows * w);
    s.suffix = from.take<C>(suffix_rows * w);
    s.prefix = from.take<C>(suffix_rows > 0 ? w : 0);
    s.column_max = from.take<C>(stride() * rf::group_rows(w));
    s.result = from.take<C>(kNative ? 0 : w);
    return s;
  }
  Scratch scratch(int thread) const {
    rf::Arena from = first_scratch;
    for (int t = 0; t < thread; ++t) take_scratch(from);
    return take_scratch(from);
  }

  rf::MaxWindow window_y, window_x;
  rf::Arena arena;
  rf::Bands bands;
  rf::RowBorder border;
  C* constant_row;
  int64_t extended_rows, converted_rows, suffix_rows;
  rf::Arena first_scratch;
  int64_t w;
};

// One step of the van Herk forward pass: prefix[x] = max(prefix[x], next[x]), dst[x] =
// max(suffix[x], prefix[x]).
template <typename C>
struct ForwardStep {
  const C *next, *suffix;
  C *prefix, *dst;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    for (int i = 0; i < K; ++i, x += kStep) {
      const V best = rf::max_of(rf::load_as<V>(next + x), rf::load_as<V>(prefix + x));
      rf::store_as(prefix + x, best);
      rf::store_as(dst + x, rf::max_of(rf::load_as<V>(suffix + x), best));
    }
  }
};

// Writes the maximum of source[y] ... source[y + size - 1] to the row that emit_to(y) returns, for
// y in [0, rows). van Herk: outputs in blocks of `size`; a window is a suffix of the block's rows
// and a prefix of the next's.
template <typename C, typename EmitTo>
void max_of_rows(const C* const* source, int64_t rows, int64_t size, C* suffix, C* prefix,
                 int64_t w, const EmitTo& emit_to) {
  if (size <= kDirectRows) {
    for (int64_t y = 0; y < rows; ++y) {
      const C* const* window = source + y;
      const auto taps = [window](int64_t k) { return window[k]; };
      if (size == 3) {
        max_of_taps(taps, 3, emit_to(y), w);
      } else {
        max_of_taps(taps, size, emit_to(y), w);
      }
    }
    return;
  }
  for (int64_t y0 = 0; y0 < rows; y0 += size) {
    const int64_t outputs = std::min(size, rows - y0);
    const C* const* block = source + y0;
    // The rows that are in the suffix of every output of this block, then one more row per output.
    const auto common = [=](int64_t k) { return block[outputs - 1 + k]; };
    max_of_taps(common, size - outputs + 1, suffix + (outputs - 1) * w, w);
    for (int64_t i = outputs - 2; i >= 0; --i)
      max_of_two(block[i], suffix + (i + 1) * w, suffix + i * w, w);
    copy_row(suffix, emit_to(y0), w);
    if (outputs > 1) copy_row(block[size], prefix, w);
    for (int64_t i = 1; i < outputs; ++i) {
      const C* next = block[size + i - 1];
      rf::for_vectors<C>(w, ForwardStep<C>{next, suffix + i * w, prefix, emit_to(y0 + i)});
    }
  }
}

template <typename T>
void filter(const T* in, T* out, int64_t n, int64_t h, int64_t w, int64_t size_y, int64_t size_x,
            rf_border mode, T cval, void* workspace) {
  using C = rf::max_key_t<T>;
  Plan<T> plan(workspace, n, h, w, size_y, size_x);
  const C constant = rf::to_max_key(cval);
  plan.border.plan(mode);
  std::fill(plan.constant_row, plan.constant_row + w, constant);

  const int64_t group = rf::group_rows(w), stride = plan.stride(), size = plan.window_x.size();
  rf::for_bands(plan.bands, h, [&](int64_t image, int64_t y0, int64_t rows, int thread) {
    const auto s = plan.scratch(thread);
    rf::extended_rows(in + image * h * w, h, w, y0 - plan.window_y.before,
                      rows + plan.window_y.size() - 1, mode, plan.constant_row, s.converted, s.rows,
                      [w](const T* src, C* dst) {
                        for (int64_t x = 0; x < w; ++x) dst[x] = rf::to_max_key(src[x]);
                      });
    const auto finish_group = [&](int64_t first, int64_t last) {
      C* row = s.column_max;
      for (int64_t y = first; y < last; ++y, row += stride) plan.border.extend(row, constant);
      row = s.column_max;
      for (int64_t y = first; y < last; ++y, row += stride) {
        T* dst = out + (image * h + y0 + y) * w;
        if constexpr (Plan<T>::kNative) {
          max_along_row(row, plan.border.width(), size, dst, w);
        } else {
          max_along_row(row, plan.border.width(), size, s.result, w);
          for (int64_t x = 0; x < w; ++x) dst[x] = rf::from_max_key<T>(s.result[x]);
        }
      }
    };
    max_of_rows(s.rows, rows, plan.window_y.size(), s.suffix, s.prefix, w, [&](int64_t y) {
      if (y > 0 && y % group == 0) finish_group(y - group, y);
      return s.column_max + y % group * stride + plan.border.before();
    });
    finish_group((rows - 1) / group * group, rows);
  });
}

}  // namespace

extern "C" rf_status rf_maximum_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                       int64_t h, int64_t w, int64_t size_y, int64_t size_x,
                                       rf_border mode, double cval, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("size", size_y, size_x, 1)) return bad;
  if (const rf_status bad = rf::check_border(mode)) return bad;
  if (n * h * w == 0) return RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    filter(static_cast<const T*>(in), static_cast<T*>(out), n, h, w, size_y, size_x, mode,
           rf::store<T>(static_cast<rf::compute_t<T>>(cval)), workspace);
  });
  return known ? RF_OK : rf::fail_dtype("maximum_filter", dtype);
}

extern "C" int64_t rf_maximum_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h,
                                                     int64_t w, int64_t size_y, int64_t size_x) {
  if (n * h * w <= 0) return 0;
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = Plan<T>(nullptr, n, h, w, size_y, size_x).arena.bytes();
  });
  return bytes;
}
