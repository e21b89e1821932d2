// Gaussian filter on CUDA. Two routes:
//  - fused, when a tile with its halo fits in 48 KB of shared memory (float: sigma up to about 5):
//    one kernel, each pixel read once (halos come from the L2 cache) and written once, weights in
//    the kernel's parameters;
//  - through the workspace for larger radii and for derivatives: weights computed on the device,
//    one kernel per axis, the image between them in compute precision.
#include "common/filter_args.h"
#include "common/gaussian_weights.h"
#include "cuda/support/launch.h"
#include "cuda/support/tiles.h"

namespace {

using rf::kTileHeight;
using rf::kTileThreadsX;
using rf::kTileThreadsY;
using rf::kTileWidth;

constexpr int kThreads = kTileThreadsX * kTileThreadsY;
constexpr int kMaxFusedRadius = 64;

template <typename C>
struct Weights {
  C y[kMaxFusedRadius + 1], x[kMaxFusedRadius + 1];
};

// The sum over k of weights[|k|] * centre[k * stride],
// from the outermost pair inwards as on the CPU.
template <typename C>
__device__ __forceinline__ C symmetric_sum(const C* centre, int stride, const C* weights,
                                           int radius) {
  C sum = -C(0);  // -0 + x is x: no first addition
  for (int k = radius; k > 0; --k) sum += weights[k] * (centre[-k * stride] + centre[k * stride]);
  return sum + weights[0] * centre[0];
}

// Vertical pass of a tile, source [32 + 2 ry, cols] -> blurred [32, cols].
// A thread takes 4 pixels of a column; with a radius known at compile time
// it loads their 4 + 2 ry source pixels once, into registers.
template <int kRadius, typename C>
__device__ __forceinline__ void blur_columns(const C* source, C* blurred, int cols,
                                             const C* weights, int radius) {
  constexpr int kPerThread = kTileHeight / kTileThreadsY;
  const int first = threadIdx.y * kPerThread;
  for (int c = threadIdx.x; c < cols; c += kTileThreadsX) {
    if constexpr (kRadius > 0) {
      C window[kPerThread + 2 * kRadius];
#pragma unroll
      for (int i = 0; i < kPerThread + 2 * kRadius; ++i) window[i] = source[(first + i) * cols + c];
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        C sum = -C(0);
#pragma unroll
        for (int k = kRadius; k > 0; --k) {
          sum += weights[k] * (window[i + kRadius - k] + window[i + kRadius + k]);
        }
        blurred[(first + i) * cols + c] = sum + weights[0] * window[i + kRadius];
      }
    } else {
      for (int i = first; i < first + kPerThread; ++i) {
        blurred[i * cols + c] =
            symmetric_sum(source + (i + radius) * cols + c, cols, weights, radius);
      }
    }
  }
}

// Both passes of one tile per block of 32 x 8 threads; a warp takes a row, neighbouring threads
// neighbouring columns. Reads every pixel once from global memory (plus the halo, cached) and
// writes it once. kRadius: the vertical radius if known at compile time, else 0.
template <typename T, int kRadius>
__global__ void __launch_bounds__(kThreads)
    gaussian_fused_kernel(const T* __restrict__ in,  // [n, h, w]
                          T* __restrict__ out,       // [n, h, w]
                          const rf::Tiling tiling, int radius_y, int radius_x, rf::Borders modes,
                          rf::compute_t<T> cval, const Weights<rf::compute_t<T>> weights) {
  using C = rf::compute_t<T>;
  RF_DYNAMIC_SHARED(C, shared);
  const int cols = kTileWidth<C> + 2 * radius_x, rows = kTileHeight + 2 * radius_y;
  C* source = shared;                 // [rows, cols]
  C* blurred = shared + rows * cols;  // [32, cols]
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const rf::Tile tile = rf::tile_at(tiling, t, kTileWidth<C>);
    rf::load_tile(in + tile.first_pixel, tiling.h, tiling.w, tile.y - radius_y, tile.x - radius_x,
                  rows, cols, modes, cval, source, [](T v) { return rf::load(v); });
    __syncthreads();
    blur_columns<kRadius>(source, blurred, cols, weights.y, radius_y);
    __syncthreads();
    for (int r = threadIdx.y; r < kTileHeight && tile.y + r < tiling.h; r += kTileThreadsY) {
      T* row = out + tile.first_pixel + static_cast<int64_t>(tile.y + r) * tiling.w + tile.x;
      for (int c = threadIdx.x; c < kTileWidth<C> && tile.x + c < tiling.w; c += kTileThreadsX) {
        row[c] =
            rf::store<T>(symmetric_sum(blurred + r * cols + c + radius_x, 1, weights.x, radius_x));
      }
    }
    __syncthreads();  // the next tile overwrites shared memory
  }
}

// The weights of one axis, for radii too large for kernel
// parameters: one block; writes weights[0 .. radius].
template <typename C>
__global__ void __launch_bounds__(kThreads)
    gaussian_weights_kernel(C* weights, double sigma, int order, int radius) {
  RF_SHARED(double, partial, [kThreads]);
  const int thread = static_cast<int>(threadIdx.x);
  const double inverse_variance = order > 0 ? 1.0 / (sigma * sigma) : 0.0;
  const double factor = radius > 0 ? -0.5 / (sigma * sigma) : 0.0;
  double sum = 0.0;
  for (int64_t k = radius - thread; k > 0; k -= kThreads)
    sum += exp(factor * static_cast<double>(k * k));
  partial[thread] = sum;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const double total = 1.0 + 2.0 * partial[0];
  for (int64_t k = thread; k <= radius; k += kThreads) {
    const double x = static_cast<double>(k);
    weights[k] = static_cast<C>(rf::derivative_factor(x, inverse_variance, order) *
                                (exp(factor * (x * x)) / total));
  }
}

// One pass along one axis for any radius: a thread per pixel, neighbouring threads in neighbouring
// columns; reads 2 radius + 1 pixels (through the caches) and as many weights, writes one pixel.
// odd: of a derivative whose weights ahead are the negatives of those behind.
template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    gaussian_axis_kernel(const In* __restrict__ in, Out* __restrict__ out,
                         const rf::compute_t<In>* __restrict__ weights, int64_t pixels, int h,
                         int w, bool along_rows, int radius, bool odd, rf_border mode,
                         rf::compute_t<In> cval) {
  using C = rf::compute_t<In>;
  const int length = along_rows ? w : h, stride = along_rows ? 1 : w;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < pixels;
       i += int64_t{gridDim.x} * kThreads) {
    const int position = static_cast<int>((along_rows ? i : i / w) % length);
    const In* line = in + (i - static_cast<int64_t>(position) * stride);
    const auto at = [&](int p) {
      const int source = rf::border_index_as<int>(p, length, mode);
      return source < 0 ? cval : rf::load(line[static_cast<int64_t>(source) * stride]);
    };
    C sum = -C(0);
    for (int k = radius; k > 0; --k) {
      const C back = at(position - k), ahead = at(position + k);
      sum += weights[k] * (odd ? back - ahead : back + ahead);
    }
    out[i] = rf::store<Out>(sum + weights[0] * at(position));
  }
}

template <typename C>
size_t fused_shared_bytes(int64_t radius_y, int64_t radius_x) {
  return (2 * kTileHeight + 2 * radius_y) * (kTileWidth<C> + 2 * radius_x) * sizeof(C);
}

template <typename C>
bool is_fused(int64_t radius_y, int64_t radius_x, int64_t order_y, int64_t order_x) {
  return order_y == 0 && order_x == 0 && radius_y <= kMaxFusedRadius &&
         radius_x <= kMaxFusedRadius &&
         fused_shared_bytes<C>(radius_y, radius_x) <= rf::kSharedLimit;
}

template <typename T>
rf_status run_fused(const T* in, T* out, int64_t n, int64_t h, int64_t w, double sigma_y,
                    double sigma_x, int64_t radius_y, int64_t radius_x, rf::Borders modes,
                    double cval, rf_stream stream) {
  using C = rf::compute_t<T>;
  Weights<C> weights{};
  rf::gaussian_weights(sigma_y, 0, radius_y, weights.y);
  rf::gaussian_weights(sigma_x, 0, radius_x, weights.x);
  const rf::Tiling tiling(n, h, w, kTileWidth<C>);
  const dim3 block(kTileThreadsX, kTileThreadsY);
  // Sigma 1 with SciPy's default truncation has radius 4: the common case gets its own kernel.
  const auto kernel = radius_y == 4 ? gaussian_fused_kernel<T, 4> : gaussian_fused_kernel<T, 0>;
  return rf::launch(kernel, tiling.grid(), block, fused_shared_bytes<C>(radius_y, radius_x), stream,
                    in, out, tiling, static_cast<int>(radius_y), static_cast<int>(radius_x), modes,
                    static_cast<C>(cval), weights);
}

template <typename T>
rf_status run_by_axis(const T* in, T* out, int64_t n, int64_t h, int64_t w, double sigma_y,
                      double sigma_x, int64_t radius_y, int64_t radius_x, int64_t order_y,
                      int64_t order_x, rf::Borders modes, double cval, void* workspace,
                      rf_stream stream) {
  using C = rf::compute_t<T>;
  C* between = static_cast<C*>(workspace);
  C* weights_y = between + n * h * w;
  C* weights_x = weights_y + radius_y + 1;
  const int64_t blocks = std::min((n * h * w + kThreads - 1) / kThreads, rf::kMaxGrid);
  const dim3 grid(static_cast<unsigned>(blocks));
  rf_status status = rf::launch(gaussian_weights_kernel<C>, 1, kThreads, 0, stream, weights_y,
                                sigma_y, order_y, radius_y);
  if (status == RF_OK) {
    status = rf::launch(gaussian_weights_kernel<C>, 1, kThreads, 0, stream, weights_x, sigma_x,
                        order_x, radius_x);
  }
  if (status == RF_OK) {
    status =
        rf::launch(gaussian_axis_kernel<T, C>, grid, kThreads, 0, stream, in, between, weights_y,
                   n * h * w, h, w, false, radius_y, order_y % 2 == 1, modes.y, cval);
  }
  if (status == RF_OK) {
    status =
        rf::launch(gaussian_axis_kernel<C, T>, grid, kThreads, 0, stream, between, out, weights_x,
                   n * h * w, h, w, true, radius_x, order_x % 2 == 1, modes.x, cval);
  }
  return status;
}

}  // namespace

extern "C" rf_status rf_gaussian_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                        int64_t h, int64_t w, double sigma_y, double sigma_x,
                                        int64_t radius_y, int64_t radius_x, int64_t order_y,
                                        int64_t order_x, rf_border mode_y, rf_border mode_x,
                                        double cval, void* workspace, rf_stream stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("radius", radius_y, radius_x, 0)) return bad;
  if (const rf_status bad = rf::check_per_axis("order", order_y, order_x, 0)) return bad;
  const rf::Borders modes{mode_y, mode_x};
  if (const rf_status bad = rf::check_borders(modes)) return bad;
  if (const rf_status bad = rf::check_tileable(h, w)) return bad;
  constexpr int64_t kMaxRadius = int64_t{1} << 28;  // positions are int in the kernels
  if (radius_y > kMaxRadius || radius_x > kMaxRadius) {
    return rf::fail(RF_INVALID_ARGUMENT, "radius on CUDA must be at most 2^28, got %lld and %lld",
                    static_cast<long long>(radius_y), static_cast<long long>(radius_x));
  }
  if (n * h * w == 0) return RF_OK;
  const int64_t used_y = rf::effective_radius(sigma_y, radius_y);
  const int64_t used_x = rf::effective_radius(sigma_x, radius_x);
  rf_status status = RF_OK;
  const bool known = rf::dispatch_float(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* source = static_cast<const T*>(in);
    T* result = static_cast<T*>(out);
    // The route follows the radii and orders that the workspace was asked for with.
    status =
        is_fused<rf::compute_t<T>>(radius_y, radius_x, order_y, order_x)
            ? run_fused(source, result, n, h, w, sigma_y, sigma_x, used_y, used_x, modes, cval,
                        stream)
            : run_by_axis(source, result, n, h, w, sigma_y, sigma_x, used_y, used_x,
                          rf::effective_order(sigma_y, order_y),
                          rf::effective_order(sigma_x, order_x), modes, cval, workspace, stream);
  });
  return known ? status : rf::fail_dtype("gaussian_filter", dtype);
}

extern "C" int64_t rf_gaussian_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h,
                                                      int64_t w, int64_t radius_y, int64_t radius_x,
                                                      int64_t order_y, int64_t order_x) {
  int64_t bytes = 0;
  rf::dispatch_float(dtype, [&](auto tag) {
    using C = rf::compute_t<typename decltype(tag)::type>;
    if (!is_fused<C>(radius_y, radius_x, order_y, order_x))
      bytes = (n * h * w + radius_y + 1 + radius_x + 1) * sizeof(C);
  });
  return bytes;
}
