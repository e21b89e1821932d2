// Gaussian filter on the CPU: for a few output rows at a time, a vertical pass over the 2r+1 source
// rows of each into the L1 cache, their borders, and a horizontal pass from there to the output.
// Every pixel is read from memory once (its neighbours' rows are still cached) and written once.
#include "common/filter_args.h"
#include "common/gaussian_weights.h"
#include "cpu/gaussian_stream.h"
#include "cpu/support/rows.h"
#include "cpu/support/simd.h"

namespace {

// The rows (vertical pass) or shifted rows (horizontal pass) that a sum runs over.
template <typename C>
struct RowTaps {
  const C* const* rows;
  const C* operator()(int64_t k) const { return rows[k]; }
};
template <typename C>
struct ColumnTaps {
  const C* row;
  const C* operator()(int64_t k) const { return row + k; }
};

// weights[0 .. radius]: by value where the radius is known, so that they stay in registers across
// the stores of a result. kRadius 0 means known at run time only.
template <int kRadius, typename C>
struct Weights {
  explicit Weights(const C* from, int64_t) {
    for (int k = 0; k <= kRadius; ++k) values[k] = from[k];
  }
  static constexpr int64_t radius = kRadius;
  C values[kRadius + 1];
};
template <typename C>
struct Weights<0, C> {
  Weights(const C* from, int64_t radius) : radius(radius), values(from) {}
  int64_t radius;
  const C* values;
};

// dst[x] = sum over k of weights[|k|] * taps(k + radius)[x], from the outermost pair inwards: small
// terms first, and the same order on every backend. kOdd: the weight of the pixel ahead is
// negative.
template <bool kOdd, typename C, typename W, typename Taps>
struct SymmetricSum {
  W weights;
  Taps taps;
  C* dst;

  template <typename V, int K>
  __attribute__((always_inline)) void run(int64_t x) const {
    constexpr int64_t kStep = sizeof(V) / sizeof(C);
    const int64_t radius = weights.radius;
    V sum[K];
    for (int i = 0; i < K; ++i) sum[i] = -V{};
#pragma GCC unroll 8
    for (int64_t k = radius; k > 0; --k) {
      const C *before = taps(radius - k) + x, *after = taps(radius + k) + x;
      const C weight = weights.values[k];
      for (int i = 0; i < K; ++i) {
        const V back = rf::load_as<V>(before + i * kStep),
                ahead = rf::load_as<V>(after + i * kStep);
        sum[i] += weight * (kOdd ? back - ahead : back + ahead);
      }
    }
    const C *centre = taps(radius) + x, weight = weights.values[0];
    for (int i = 0; i < K; ++i) {
      rf::store_as(dst + x + i * kStep, sum[i] + weight * rf::load_as<V>(centre + i * kStep));
    }
  }
};

// Vertical pass and borders: row y of blurred, `stride` apart, from rows[y] ... rows[y + 2 radius].
template <bool kOdd, int kRadius, typename C>
void blur_columns(const C* const* rows, int64_t count, const Weights<kRadius, C>& weights,
                  C* blurred, int64_t stride, int64_t w) {
  for (int64_t y = 0; y < count; ++y) {
    rf::for_vectors<C>(w, SymmetricSum<kOdd, C, Weights<kRadius, C>, RowTaps<C>>{
                              weights, {rows + y}, blurred + y * stride});
  }
}

// Horizontal pass: row y of dst from row y of blurred, whose borders are filled.
template <bool kOdd, int kRadius, typename C>
void blur_rows(const C* blurred, int64_t stride, int64_t count, const Weights<kRadius, C>& weights,
               C* dst, int64_t w) {
  for (int64_t y = 0; y < count; ++y) {
    rf::for_vectors<C>(w, SymmetricSum<kOdd, C, Weights<kRadius, C>, ColumnTaps<C>>{
                              weights, {blurred + y * stride}, dst + y * w});
  }
}

// body(std::integral_constant<int, radius>, is odd) for the radii of sigma 0.5, 1 and 1.5, whose
// sums are unrolled; 0 for the others, and for odd derivatives.
template <typename Body>
void with_radius(int64_t radius, int64_t order, const Body& body) {
  if (order % 2 == 1) return body(std::integral_constant<int, 0>{}, std::true_type{});
  switch (radius) {
    case 2:
      return body(std::integral_constant<int, 2>{}, std::false_type{});
    case 4:
      return body(std::integral_constant<int, 4>{}, std::false_type{});
    case 6:
      return body(std::integral_constant<int, 6>{}, std::false_type{});
    default:
      return body(std::integral_constant<int, 0>{}, std::false_type{});
  }
}

template <typename T>
struct Plan {
  using C = rf::compute_t<T>;
  static constexpr bool kNative = std::is_same_v<T, C>;

  struct Scratch {  // of one thread
    const C** rows;
    C *converted, *blurred, *result, *pair;
  };

  // Threads and bands follow `halo`, the radius the caller named, so that a smaller radius_y (sigma
  // 0) never needs more than the caller was told.
  Plan(void* workspace, int64_t n, int64_t h, int64_t w, int64_t halo, int64_t radius_y,
       int64_t radius_x)
      : arena(workspace),
        bands(rf::plan_bands(n, h, w, halo)),
        border(arena, w, radius_x, radius_x),
        weights_y(arena.take<C>(radius_y + 1)),
        weights_x(arena.take<C>(radius_x + 1)),
        constant_row(arena.take<C>(w)),
        row_starts(arena.take<int64_t>(kNative ? h + 2 * radius_y + 1 : 0)),
        extended_rows(bands.rows + 2 * radius_y),
        converted_rows(kNative ? 0 : std::min(h, extended_rows)),
        first_scratch(arena),
        w(w) {
    for (int t = 0; t < bands.threads; ++t) take_scratch(arena);
  }

  Scratch take_scratch(rf::Arena& from) const {
    Scratch s;
    s.rows = from.take<const C*>(extended_rows);
    s.converted = from.take<C>(converted_rows * w);
    s.blurred = from.take<C>(border.width() * rf::group_rows(w));
    s.result = from.take<C>(kNative ? 0 : w * rf::group_rows(w));
    s.pair = from.take<C>(kNative ? 2 * w : 0);
    return s;
  }
  Scratch scratch(int thread) const {
    rf::Arena from = first_scratch;
    for (int t = 0; t < thread; ++t) take_scratch(from);
    return take_scratch(from);
  }

  rf::Arena arena;
  rf::Bands bands;
  rf::RowBorder border;
  C *weights_y, *weights_x, *constant_row;
  // Where the rows of an image and of its border begin, from the first one above the image.
  int64_t* row_starts;
  int64_t extended_rows, converted_rows;
  rf::Arena first_scratch;
  int64_t w;
};

// The usual case, a reflected border and one sigma for both axes: false if it is not one of those
// that GaussianStream knows.
template <typename T>
bool stream(const Plan<T>& plan, const T* in, T* out, int64_t h, int64_t w, int64_t radius) {
  using C = rf::compute_t<T>;
  bool done = false;
  with_radius(radius, 0, [&](auto known, auto) {
    if constexpr (Plan<T>::kNative && known() > 0 && known() <= rf::Vector<C>::kLanes) {
      using Stream = rf::GaussianStream<known(), C>;
      if (!Stream::fits(w)) return;
      for (int64_t y = 0; y < h + 2 * radius + 1; ++y) {
        plan.row_starts[y] = rf::border_index(y - radius, h, RF_REFLECT) * w;
      }
      rf::for_bands(plan.bands, h, [&](int64_t image, int64_t y0, int64_t rows, int thread) {
        const Stream stream(plan.weights_y, plan.scratch(thread).pair, w);
        stream.run(in + image * h * w, plan.row_starts + y0, rows, out + (image * h + y0) * w);
      });
      done = true;
    }
  });
  return done;
}

template <typename T>
void filter(const T* in, T* out, int64_t n, int64_t h, int64_t w, double sigma_y, double sigma_x,
            int64_t halo, int64_t halo_x, int64_t order_y, int64_t order_x, rf::Borders modes,
            double cval, void* workspace) {
  using C = rf::compute_t<T>;
  const int64_t radius_y = rf::effective_radius(sigma_y, halo);
  const int64_t radius_x = rf::effective_radius(sigma_x, halo_x);
  Plan<T> plan(workspace, n, h, w, halo, radius_y, radius_x);
  order_y = rf::effective_order(sigma_y, order_y);
  order_x = rf::effective_order(sigma_x, order_x);
  rf::gaussian_weights(sigma_y, order_y, radius_y, plan.weights_y);
  rf::gaussian_weights(sigma_x, order_x, radius_x, plan.weights_x);
  const bool isotropic = sigma_x == sigma_y && radius_x == radius_y && order_y + order_x == 0;
  const bool reflects = modes.y == RF_REFLECT && modes.x == RF_REFLECT;
  if (isotropic && reflects && stream(plan, in, out, h, w, radius_y)) return;
  plan.border.plan(modes.x);
  std::fill(plan.constant_row, plan.constant_row + w, static_cast<C>(cval));

  const int64_t group = rf::group_rows(w), stride = plan.border.width();
  rf::for_bands(plan.bands, h, [&](int64_t image, int64_t y0, int64_t rows, int thread) {
    const auto scratch = plan.scratch(thread);
    rf::extended_rows(in + image * h * w, h, w, y0 - radius_y, rows + 2 * radius_y, modes.y,
                      plan.constant_row, scratch.converted, scratch.rows,
                      [w](const T* src, C* dst) { rf::load_row(src, dst, w); });
    for (int64_t first = 0; first < rows; first += group) {
      const int64_t count = std::min(group, rows - first);
      with_radius(radius_y, order_y, [&](auto radius, auto odd) {
        blur_columns<odd()>(scratch.rows + first, count,
                            Weights<radius(), C>(plan.weights_y, radius_y),
                            scratch.blurred + radius_x, stride, w);
      });
      T* dst = out + (image * h + y0 + first) * w;
      with_radius(radius_x, order_x, [&](auto radius, auto odd) {
        plan.border.template extend_rows<radius()>(scratch.blurred, stride, count,
                                                   static_cast<C>(cval));
        const Weights<radius(), C> weights(plan.weights_x, radius_x);
        if constexpr (Plan<T>::kNative) {
          blur_rows<odd()>(scratch.blurred, stride, count, weights, dst, w);
        } else {
          blur_rows<odd()>(scratch.blurred, stride, count, weights, scratch.result, w);
          rf::store_row(scratch.result, dst, count * w);
        }
      });
    }
  });
}

}  // namespace

extern "C" rf_status rf_gaussian_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                        int64_t h, int64_t w, double sigma_y, double sigma_x,
                                        int64_t radius_y, int64_t radius_x, int64_t order_y,
                                        int64_t order_x, rf_border mode_y, rf_border mode_x,
                                        double cval, void* workspace, rf_stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("radius", radius_y, radius_x, 0, rf::kMaxRadius))
    return bad;
  if (const rf_status bad = rf::check_per_axis("order", order_y, order_x, 0, rf::kMaxOrder))
    return bad;
  if (const rf_status bad = rf::check_borders({mode_y, mode_x})) return bad;
  if (n * h * w == 0) return RF_OK;
  const bool known = rf::dispatch_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    filter(static_cast<const T*>(in), static_cast<T*>(out), n, h, w, sigma_y, sigma_x, radius_y,
           radius_x, order_y, order_x, {mode_y, mode_x}, cval, workspace);
  });
  return known ? RF_OK : rf::fail_dtype("gaussian_filter", dtype);
}

extern "C" int64_t rf_gaussian_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h,
                                                      int64_t w, int64_t radius_y, int64_t radius_x,
                                                      int64_t, int64_t) {
  if (n * h * w <= 0) return 0;
  if (rf::check_per_axis("radius", radius_y, radius_x, 0, rf::kMaxRadius) != RF_OK) {
    return 0;  // the call itself will say so
  }
  int64_t bytes = 0;
  rf::dispatch_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = Plan<T>(nullptr, n, h, w, radius_y, radius_y, radius_x).arena.bytes();
  });
  return bytes;
}
