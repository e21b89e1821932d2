// Maximum filter on the CPU: per output row, the maximum over the window's rows into one row in the
// L1 cache, its border, and the maximum over the window's columns from there to the output.
//
// Rows: small windows directly; larger ones by van Herk / Gil-Werman, three maxima per pixel
// whatever the size. Columns: windows of 4, 16, 64 ... pixels grown in place, then up to four of
// them cover the window.
#include "common/filter_args.h"
#include "common/max_window.h"
#include "cpu/support/rows.h"
#include "cpu/support/simd.h"

namespace {

constexpr int64_t kStripBytes = 4 * rf::kVectorBytes;  // of the widest block of for_vectors
// Up to here reading every row beats van Herk (224x224 float32, Zen 4).
constexpr int64_t kDirectRows = 5;

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

// row[x] = the maximum of 16 values from x on, in place, for x in [0, width). Windows of 2 come
// from memory, those of 4, 8 and 16 from neighbouring vectors in registers: a quarter of the loads
// of two steps of grow_windows.
template <typename C>
void grow_to_16(C* row, int64_t width) {
  using V = rf::vector_t<C>;
  constexpr int kLanes = rf::Vector<C>::kLanes;
  const auto of_2 = [](const C* p) __attribute__((always_inline)) {
    return rf::max_of(rf::load_as<V>(p), rf::load_as<V>(p + 1));
  };
  const V first_two = of_2(row), second_two = of_2(row + kLanes);
  V two = of_2(row + 2 * kLanes);
  const V first_four = rf::max_of(first_two, rf::shifted<2>(first_two, second_two));
  V four = rf::max_of(second_two, rf::shifted<2>(second_two, two));
  V eight = rf::max_of(first_four, rf::shifted<4>(first_four, four));
  for (int64_t x = 0; x < width; x += kLanes) {
    const V next_two = of_2(row + x + 3 * kLanes);
    const V next_four = rf::max_of(two, rf::shifted<2>(two, next_two));
    const V next_eight = rf::max_of(four, rf::shifted<4>(four, next_four));
    rf::store_as(row + x, rf::max_of(eight, rf::shifted<8>(eight, next_eight)));
    two = next_two;
    four = next_four;
    eight = next_eight;
  }
}

// Grows the windows of rows [0, rows), each of `width` values and `stride` apart, in place:
// afterwards row[x] is the maximum of as many pixels from x on as is returned, at least a quarter
// of `size`. Step by step over all rows: a row just stored would stall loads at other alignments.
template <typename C>
int64_t grow_windows(C* first, int64_t rows, int64_t stride, int64_t width, int64_t size) {
  using V = rf::vector_t<C>;
  int64_t covered = 1;
  if constexpr (rf::Vector<C>::kLanes >= 8) {
    if (size > 16) {
      covered = 16;
      width -= 15;
      for (int64_t r = 0; r < rows; ++r) grow_to_16(first + r * stride, width);
    }
  }
  for (; 4 * covered < size; covered *= 4) {
    width -= 3 * covered;
    for (int64_t r = 0; r < rows; ++r) {
      C* row = first + r * stride;
      // Value x needs only values from x on. The stride has room for the overhang of a vector.
      for (int64_t x = 0; x < width; x += rf::Vector<C>::kLanes) {
        const C* from = row + x;
        const V a = rf::load_as<V>(from), b = rf::load_as<V>(from + covered);
        const V c = rf::load_as<V>(from + 2 * covered), d = rf::load_as<V>(from + 3 * covered);
        rf::store_as(row + x, rf::max_of(rf::max_of(a, b), rf::max_of(c, d)));
      }
    }
  }
  return covered;
}

// dst[x] = the maximum of `size` pixels from x on, by up to four windows of `covered` pixels.
template <typename C>
void cover_windows(const C* row, int64_t covered, int64_t size, C* dst, int64_t w) {
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
    C *converted, *suffix, *column_max, *result;
  };

  Plan(void* workspace, int64_t n, int64_t h, int64_t w, rf::MaxWindow window_y,
       rf::MaxWindow window_x)
      : window_y(window_y),
        window_x(window_x),
        arena(workspace),
        bands(rf::plan_bands(n, h, w, window_y.size() / 2)),
        border(arena, w, window_x.before, window_x.after),
        constant_row(arena.take<C>(w)),
        extended_rows(bands.rows + window_y.size() - 1),
        converted_rows(kNative ? 0 : std::min(h, extended_rows)),
        group(window_y.size() > kDirectRows ? std::min(window_y.size(), bands.rows)
                                            : rf::group_rows(w)),
        first_scratch(arena),
        w(w) {
    for (int t = 0; t < bands.threads; ++t) take_scratch(arena);
  }

  // Of the rows with borders: they begin on cache lines,
  // and grow_windows may run over the end by a vector.
  int64_t stride() const {
    constexpr int64_t kLine = 64 / sizeof(C);
    return (border.width() + 4 * rf::Vector<C>::kLanes + kLine - 1) / kLine * kLine;
  }

  Scratch take_scratch(rf::Arena& from) const {
    Scratch s;
    s.rows = from.take<const C*>(extended_rows);
    s.converted = from.take<C>(converted_rows * w);
    s.suffix = from.take<C>(window_y.size() > kDirectRows ? group * kStripBytes / sizeof(C) : 0);
    s.column_max = from.take<C>(stride() * group);
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
  int64_t extended_rows, converted_rows;
  int64_t group;  // rows that go through the two passes together; van Herk wants a window of them
  rf::Arena first_scratch;
  int64_t w;
};

// van Herk / Gil-Werman: the windows of `outputs` <= size successive rows,
// dst(i) from rows[i] ... rows[i + size - 1], each the suffix
// of rows[0 .. size - 1] and a prefix of the rows after those. A strip of columns at a time,
// so that suffixes stay in the L1 cache and the running maximum in registers.
template <typename C>
struct VanHerk {
  const C* const* rows;
  int64_t size, outputs;
  C* suffix;  // [outputs, K vectors]
  C* dst;     // [outputs, stride]
  int64_t stride;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    V best[K];
    for (int i = 0; i < K; ++i) best[i] = rf::load_as<V>(rows[size - 1] + x + i * kStep);
    for (int64_t r = size - 1; r >= 0; --r) {
      for (int i = 0; i < K; ++i) {
        best[i] = rf::max_of(rf::load_as<V>(rows[r] + x + i * kStep), best[i]);
        if (r < outputs) rf::store_as(suffix + (r * K + i) * kStep, best[i]);
      }
    }
    for (int i = 0; i < K; ++i) rf::store_as(dst + x + i * kStep, best[i]);
    if (outputs == 1) return;
    for (int i = 0; i < K; ++i) best[i] = rf::load_as<V>(rows[size] + x + i * kStep);
    for (int64_t r = 1; r < outputs; ++r) {
      C* result = dst + r * stride + x;
      for (int i = 0; i < K; ++i) {
        best[i] = rf::max_of(rf::load_as<V>(rows[size + r - 1] + x + i * kStep), best[i]);
        const V whole = rf::max_of(rf::load_as<V>(suffix + (r * K + i) * kStep), best[i]);
        rf::store_as(result + i * kStep, whole);
      }
    }
  }
};

// Writes the maximum of source[y] ... source[y + size - 1]
// to dst[y * stride ...] for y in [0, rows).
template <typename C>
void max_of_rows(const C* const* source, int64_t rows, int64_t size, C* suffix, C* dst,
                 int64_t stride, int64_t w) {
  if (size > kDirectRows) {
    rf::for_vectors<C>(w, VanHerk<C>{source, size, rows, suffix, dst, stride});
    return;
  }
  for (int64_t y = 0; y < rows; ++y) {
    const C* const* window = source + y;
    const auto taps = [window](int64_t k) { return window[k]; };
    if (size == 3) {
      max_of_taps(taps, 3, dst + y * stride, w);
    } else {
      max_of_taps(taps, size, dst + y * stride, w);
    }
  }
}

template <typename C>
void prefetch_row(const C* row, int64_t w) {
  for (int64_t x = 0; x < w; x += 64 / static_cast<int64_t>(sizeof(C)))
    __builtin_prefetch(row + x, 0, 2);
}

template <typename T>
void filter(const T* in, T* out, int64_t n, int64_t h, int64_t w, rf::MaxWindow window_y,
            rf::MaxWindow window_x, rf::Borders modes, T cval, void* workspace) {
  using C = rf::max_key_t<T>;
  Plan<T> plan(workspace, n, h, w, window_y, window_x);
  const C constant = rf::to_max_key(cval);
  plan.border.plan(modes.x);
  std::fill(plan.constant_row, plan.constant_row + w, constant);

  const int64_t stride = plan.stride(), size = plan.window_x.size();
  rf::for_bands(plan.bands, h, [&](int64_t image, int64_t y0, int64_t rows, int thread) {
    const auto s = plan.scratch(thread);
    rf::extended_rows(in + image * h * w, h, w, y0 - plan.window_y.before,
                      rows + plan.window_y.size() - 1, modes.y, plan.constant_row, s.converted,
                      s.rows, [w](const T* src, C* dst) {
                        for (int64_t x = 0; x < w; ++x) dst[x] = rf::to_max_key(src[x]);
                      });
    const bool van_herk = plan.window_y.size() > kDirectRows;
    for (int64_t first = 0; first < rows; first += plan.group) {
      const int64_t last = std::min(rows, first + plan.group);
      max_of_rows(s.rows + first, last - first, plan.window_y.size(), s.suffix,
                  s.column_max + plan.border.before(), stride, w);
      for (int64_t y = first; y < last; y += rf::group_rows(w)) {
        const int64_t count = std::min(last - y, rf::group_rows(w));
        C* bordered = s.column_max + (y - first) * stride;
        for (int64_t r = 0; r < count; ++r) plan.border.extend(bordered + r * stride, constant);
        const int64_t covered = grow_windows(bordered, count, stride, plan.border.width(), size);
        for (int64_t r = 0; r < count; ++r) {
          // Strips of van Herk jump from row to row, which no hardware prefetcher follows: while
          // this group's rows are finished, fetch those that will be new in the next, at the end
          // of an image those the next image begins with.
          const int64_t coming = image * h + y0 + y + r + plan.group + plan.window_y.after;
          if (van_herk && coming < n * h) prefetch_row(in + coming * w, w);
          T* dst = out + (image * h + y0 + y + r) * w;
          if constexpr (Plan<T>::kNative) {
            cover_windows(bordered + r * stride, covered, size, dst, w);
          } else {
            cover_windows(bordered + r * stride, covered, size, s.result, w);
            for (int64_t x = 0; x < w; ++x) dst[x] = rf::from_max_key<T>(s.result[x]);
          }
        }
      }
    }
  });
}

}  // namespace

extern "C" rf_status rf_maximum_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                       int64_t h, int64_t w, int64_t size_y, int64_t size_x,
                                       int64_t origin_y, int64_t origin_x, rf_border mode_y,
                                       rf_border mode_x, double cval, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("size", size_y, size_x, 1, rf::kMaxWindow))
    return bad;
  if (const rf_status bad = rf::check_origin(size_y, size_x, origin_y, origin_x)) return bad;
  if (const rf_status bad = rf::check_borders({mode_y, mode_x})) return bad;
  if (n * h * w == 0) return RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    filter(static_cast<const T*>(in), static_cast<T*>(out), n, h, w,
           rf::max_window(size_y, origin_y, h), rf::max_window(size_x, origin_x, w),
           {mode_y, mode_x}, rf::store<T>(static_cast<rf::compute_t<T>>(cval)), workspace);
  });
  return known ? RF_OK : rf::fail_dtype("maximum_filter", dtype);
}

extern "C" int64_t rf_maximum_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h,
                                                     int64_t w, int64_t size_y, int64_t size_x,
                                                     int64_t origin_y, int64_t origin_x) {
  if (n * h * w <= 0) return 0;
  if (rf::check_per_axis("size", size_y, size_x, 1, rf::kMaxWindow) != RF_OK ||
      rf::check_origin(size_y, size_x, origin_y, origin_x) != RF_OK) {
    return 0;  // the call itself will say so
  }
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = Plan<T>(nullptr, n, h, w, rf::max_window(size_y, origin_y, h),
                    rf::max_window(size_x, origin_x, w))
                .arena.bytes();
  });
  return bytes;
}
