// Sobel on the CPU: strips of columns, walked down row by row with the last three rows in the L1
// cache; every pixel is read from memory once and written once. As in SciPy the derivative comes
// first and its own border (with RF_CONSTANT: cval) is what the smoothing sees.
#include "common/filter_args.h"
#include "cpu/support/rows.h"

namespace {

constexpr int64_t kStrip = 1024;  // columns: four rows of doubles fit in a 32 KB L1 cache

// dst[i] for columns x0 - 1 + i, i in [0, count + 2):
// one row of the image with a column on each side.
template <typename T>
void load_with_border(const T* row, int64_t w, int64_t x0, int64_t count, rf_border mode,
                      rf::compute_t<T> cval, rf::compute_t<T>* dst) {
  rf::load_row(row + x0, dst + 1, count);
  const int64_t left = rf::border_index(x0 - 1, w, mode),
                right = rf::border_index(x0 + count, w, mode);
  dst[0] = left < 0 ? cval : rf::load(row[left]);
  dst[count + 1] = right < 0 ? cval : rf::load(row[right]);
}

// For for_vectors: dst = after - before, and dst = before + 2 middle + after.
template <typename C>
struct Difference {
  const C *before, *after;
  C* dst;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    for (int64_t i = x; i < x + K * kStep; i += kStep) {
      rf::store_as(dst + i, rf::load_as<V>(after + i) - rf::load_as<V>(before + i));
    }
  }
};
template <typename C>
struct Smoothed {
  const C *before, *middle, *after;
  C* dst;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    for (int64_t i = x; i < x + K * kStep; i += kStep) {
      const V ends = rf::load_as<V>(before + i) + rf::load_as<V>(after + i);
      rf::store_as(dst + i, ends + C(2) * rf::load_as<V>(middle + i));
    }
  }
};

template <typename T>
class Strip {
  using C = rf::compute_t<T>;

 public:
  Strip(const T* image, int64_t h, int64_t w, int64_t x0, int axis, rf::Borders modes, C cval)
      : image_(image),
        h_(h),
        w_(w),
        x0_(x0),
        count_(std::min(kStrip, w - x0)),
        axis_(axis),
        modes_(modes),
        cval_(cval) {}

  void run(T* out, int64_t y0, int64_t rows) {
    C *above = buffers_[0], *here = buffers_[1], *below = buffers_[2];
    fetch(y0 - 1, above);
    fetch(y0, here);
    for (int64_t y = y0; y < y0 + rows; ++y) {
      fetch(y + 1, below);
      T* dst = out + y * w_ + x0_;
      if (axis_ == 0) {
        derive_rows(above, below);
        smooth(derivative_, derivative_ + 1, derivative_ + 2, dst);
      } else {
        smooth(above, here, below, dst);
      }
      C* oldest = above;
      above = here;
      here = below;
      below = oldest;
    }
  }

 private:
  // axis 0: the source row with its border. axis 1: its derivative along columns.
  void fetch(int64_t y, C* dst) {
    const int64_t source = rf::border_index(y, h_, modes_.y);
    if (source < 0) {
      std::fill(dst, dst + count_ + 2, cval_);
      return;
    }
    C* loaded = axis_ == 0 ? dst : derivative_;
    load_with_border(image_ + source * w_, w_, x0_, count_, modes_.x, cval_, loaded);
    if (axis_ == 0) return;
    rf::for_vectors<C>(count_, Difference<C>{loaded, loaded + 2, dst});
  }

  void derive_rows(const C* above, const C* below) {
    rf::for_vectors<C>(count_ + 2, Difference<C>{above, below, derivative_});
    if (modes_.x != RF_CONSTANT) return;
    if (x0_ == 0) derivative_[0] = cval_;
    if (x0_ + count_ == w_) derivative_[count_ + 1] = cval_;
  }

  void smooth(const C* before, const C* middle, const C* after, T* dst) {
    if constexpr (std::is_same_v<T, C>) {
      rf::for_vectors<C>(count_, Smoothed<C>{before, middle, after, dst});
    } else {
      rf::for_vectors<C>(count_, Smoothed<C>{before, middle, after, result_});
      rf::store_row(result_, dst, count_);
    }
  }

  const T* image_;
  int64_t h_, w_, x0_, count_;
  int axis_;
  rf::Borders modes_;
  C cval_;
  C buffers_[3][kStrip + 2], derivative_[kStrip + 2], result_[kStrip];
};

template <typename T>
void filter(const T* in, T* out, int64_t n, int64_t h, int64_t w, int axis, rf::Borders modes,
            double cval) {
  const int64_t strips = (w + kStrip - 1) / kStrip;
  const rf::Bands bands = rf::plan_bands(n, h, std::min(w, kStrip), 1);
  const int64_t items_per_image = bands.per_image * strips;
  rf::parallel_for(n * items_per_image, bands.grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t image = item / items_per_image, part = item % items_per_image;
      const int64_t y = part / strips * bands.rows, x = part % strips * kStrip;
      Strip<T> strip(in + image * h * w, h, w, x, axis, modes, static_cast<rf::compute_t<T>>(cval));
      strip.run(out + image * h * w, y, std::min(bands.rows, h - y));
    }
  });
}

}  // namespace

extern "C" rf_status rf_sobel(const void* in, void* out, rf_dtype dtype, int64_t n, int64_t h,
                              int64_t w, int axis, rf_border mode_y, rf_border mode_x, double cval,
                              rf_stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_borders({mode_y, mode_x})) return bad;
  if (axis != 0 && axis != 1)
    return rf::fail(RF_INVALID_ARGUMENT, "axis must be 0 or 1, got %d", axis);
  if (n * h * w == 0) return RF_OK;
  const bool known = rf::dispatch_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    filter(static_cast<const T*>(in), static_cast<T*>(out), n, h, w, axis, {mode_y, mode_x}, cval);
  });
  return known ? RF_OK : rf::fail_dtype("sobel", dtype);
}
