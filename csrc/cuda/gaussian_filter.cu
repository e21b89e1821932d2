// Gaussian filter on CUDA. Two routes:
//  - fused, when a tile with its halo fits in 48 KB of shared memory (float: sigma up to about 5):
//    one kernel, each pixel read once (halos come from the L2 cache) and written once, weights in
//    the kernel's parameters;
//  - for larger radii and derivatives one kernel per axis (gaussian_long.h), the image between them
//    in the workspace, in compute precision; for radii beyond shared memory (hundreds of pixels)
//    and odd derivatives a plain loop.
// Weights come from the host, so that they are the same bits on every backend.
#include <algorithm>
#include <vector>

#include "common/filter_args.h"
#include "common/gaussian_weights.h"
#include "cuda/gaussian_long.h"
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
// from the outermost pair inwards as on the CPU. kRadius: the radius if known at compile time.
template <int kRadius = 0, typename C>
__device__ __forceinline__ C symmetric_sum(const C* centre, int stride, const C* weights,
                                           int radius) {
  C sum = -C(0);  // -0 + x is x: no first addition
  const auto pair = [&](int k) { return weights[k] * (centre[-k * stride] + centre[k * stride]); };
  if constexpr (kRadius > 0) {
#pragma unroll
    for (int k = kRadius; k > 0; --k) sum += pair(k);
  } else {
    for (int k = radius; k > 0; --k) sum += pair(k);
  }
  return sum + weights[0] * centre[0];
}

// Vertical pass of a tile, source [32 + 2 ry, pitch] -> blurred [32, pitch].
// A thread takes 4 pixels of a column; with a radius known at compile time
// it loads their 4 + 2 ry source pixels once, into registers.
// Columns outside [left, right) are those of a constant border: `cval`, as on the CPU, and not a
// blur of it, which rounds.
template <int kRadius, typename C>
__device__ __forceinline__ void blur_columns(const C* source, C* blurred, int cols, int pitch,
                                             const C* weights, int radius, int left, int right,
                                             C cval) {
  constexpr int kPerThread = kTileHeight / kTileThreadsY;
  const int first = threadIdx.y * kPerThread;
  for (int c = threadIdx.x; c < cols; c += kTileThreadsX) {
    if (c < left || c >= right) {
      for (int i = first; i < first + kPerThread; ++i) blurred[i * pitch + c] = cval;
      continue;
    }
    if constexpr (kRadius > 0) {
      C window[kPerThread + 2 * kRadius];
#pragma unroll
      for (int i = 0; i < kPerThread + 2 * kRadius; ++i)
        window[i] = source[(first + i) * pitch + c];
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        C sum = -C(0);
#pragma unroll
        for (int k = kRadius; k > 0; --k) {
          sum += weights[k] * (window[i + kRadius - k] + window[i + kRadius + k]);
        }
        blurred[(first + i) * pitch + c] = sum + weights[0] * window[i + kRadius];
      }
    } else {
      for (int i = first; i < first + kPerThread; ++i) {
        blurred[i * pitch + c] =
            symmetric_sum(source + (i + radius) * pitch + c, pitch, weights, radius);
      }
    }
  }
}

// Both passes of one tile per block of 32 x 8 threads; a warp takes a row, neighbouring threads
// neighbouring columns. Reads every pixel once from global memory (plus the halo, cached) and
// writes it once. kRadius: both radii if known at compile time, else 0.
// Blocks on an SM: as many as registers allow without spilling one.
template <typename T, int kRadius>
__global__ void __launch_bounds__(kThreads, sizeof(T) < 8 && kRadius > 0 ? 5 : 1)
    gaussian_fused_kernel(const T* __restrict__ in,  // [n, h, w]
                          T* __restrict__ out,       // [n, h, w]
                          const rf::Tiling tiling, int radius_y, int radius_x, rf::Borders modes,
                          rf::compute_t<T> cval, const Weights<rf::compute_t<T>> weights) {
  using C = rf::compute_t<T>;
  RF_DYNAMIC_SHARED(C, shared);
  if constexpr (kRadius > 0) radius_y = radius_x = kRadius;
  const int pitch = kTileWidth<C> + 2 * radius_x, rows = kTileHeight + 2 * radius_y;
  C* source = shared;                  // [rows, pitch]
  C* blurred = shared + rows * pitch;  // [32, pitch]
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const rf::Tile tile = rf::tile_at(tiling, t, kTileWidth<C>);
    const int cols = tile.width + 2 * radius_x;
    rf::load_tile(in + tile.first_pixel, tiling.h, tiling.w, tile.y - radius_y, tile.x - radius_x,
                  rows, cols, pitch, modes, cval, source, [](T v) { return rf::load(v); });
    __syncthreads();
    const bool constant = modes.x == RF_CONSTANT;
    blur_columns<kRadius>(source, blurred, cols, pitch, weights.y, radius_y,
                          constant ? radius_x - tile.x : 0,
                          constant ? tiling.w - tile.x + radius_x : cols, cval);
    __syncthreads();
    for (int r = threadIdx.y; r < kTileHeight && tile.y + r < tiling.h; r += kTileThreadsY) {
      T* row = out + tile.first_pixel + static_cast<int64_t>(tile.y + r) * tiling.w + tile.x;
      for (int c = threadIdx.x; c < tile.width; c += kTileThreadsX) {
        row[c] = rf::store<T>(
            symmetric_sum<kRadius>(blurred + r * pitch + c + radius_x, 1, weights.x, radius_x));
      }
    }  // the next tile is loaded into `source`; a barrier follows before `blurred` is written
  }
}

// Weights that are too many for the parameters of the kernel that uses them, a part at a time.
template <typename C>
struct WeightPart {
  static constexpr int kCount = 3840 / sizeof(C);
  C at[kCount];
};
template <typename C>
__global__ void __launch_bounds__(kThreads)
    store_weights_kernel(C* to, const __grid_constant__ WeightPart<C> part, int count) {
  for (int k = static_cast<int>(threadIdx.x); k < count; k += kThreads) to[k] = part.at[k];
}

template <typename C>
rf_status store_weights(C* to, double sigma, int64_t order, int64_t radius, rf_stream stream) {
  std::vector<C> weights(static_cast<size_t>(radius + 1));
  rf::gaussian_weights(sigma, order, radius, weights.data());
  for (int64_t first = 0; first <= radius; first += WeightPart<C>::kCount) {
    const int count =
        static_cast<int>(std::min<int64_t>(WeightPart<C>::kCount, radius + 1 - first));
    WeightPart<C> part{};
    std::copy_n(weights.data() + first, count, part.at);
    const rf_status status =
        rf::launch(store_weights_kernel<C>, 1, kThreads, 0, stream, to + first, part, count);
    if (status != RF_OK) return status;
  }
  return RF_OK;
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
  const auto kernel =
      radius_y == 4 && radius_x == 4 ? gaussian_fused_kernel<T, 4> : gaussian_fused_kernel<T, 0>;
  return rf::launch(kernel, tiling.grid(), block, fused_shared_bytes<C>(radius_y, radius_x), stream,
                    in, out, tiling, static_cast<int>(radius_y), static_cast<int>(radius_x), modes,
                    static_cast<C>(cval), weights);
}

// One axis by a kernel of gaussian_long.h, or by the plain loop where the radius is too long for
// it or the derivative is odd.
template <bool kAlongRows, typename In, typename Out>
rf_status run_axis(const In* in, Out* out, rf::compute_t<In>* device_weights, int64_t n, int64_t h,
                   int64_t w, double sigma, int64_t radius, int64_t order, rf_border mode,
                   double cval, rf_stream stream) {
  using C = rf::compute_t<In>;
  size_t shared_limit = 0;
  rf_status status = rf::shared_memory_limit(&shared_limit);
  if (status != RF_OK) return status;
  const bool odd = order % 2 == 1;
  const size_t shared =
      radius <= rf::kMaxLongRadius ? rf::long_shared_bytes<C>(radius) : ~size_t{0};
  if (!odd && shared <= shared_limit) {
    rf::LongWeights<C> weights{};
    rf::gaussian_weights(sigma, order, radius, weights.at);
    const auto start = [&](auto kernel, int tile_h, int tile_w) {
      const rf::LongTiling tiling(n, h, w, tile_h, tile_w);
      if (const rf_status bad = rf::allow_dynamic_shared(kernel, shared)) return bad;
      return rf::launch(kernel, tiling.grid(), dim3(kTileThreadsX, kTileThreadsY), shared, stream,
                        in, out, tiling, static_cast<int>(radius), rf::long_halo(radius), mode,
                        static_cast<C>(cval), weights);
    };
    // Not chosen while running: kernels that convert the wrong way would be made and never used.
    if constexpr (kAlongRows) {
      return start(rf::gaussian_long_rows_kernel<In, Out>, rf::kLongLines, rf::kLongTile);
    } else {
      return start(rf::gaussian_long_columns_kernel<In, Out>, rf::kLongTile, rf::kLongLines);
    }
  }
  status = store_weights(device_weights, sigma, order, radius, stream);
  if (status != RF_OK) return status;
  const int64_t blocks = std::min((n * h * w + kThreads - 1) / kThreads, rf::kMaxGrid);
  return rf::launch(gaussian_axis_kernel<In, Out>, dim3(static_cast<unsigned>(blocks)), kThreads, 0,
                    stream, in, out, device_weights, n * h * w, h, w, kAlongRows, radius, odd, mode,
                    cval);
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
  const rf_status status = run_axis<false>(in, between, weights_y, n, h, w, sigma_y, radius_y,
                                           order_y, modes.y, cval, stream);
  if (status != RF_OK) return status;
  return run_axis<true>(static_cast<const C*>(between), out, weights_x, n, h, w, sigma_x, radius_x,
                        order_x, modes.x, cval, stream);
}

}  // namespace

extern "C" rf_status rf_gaussian_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                        int64_t h, int64_t w, double sigma_y, double sigma_x,
                                        int64_t radius_y, int64_t radius_x, int64_t order_y,
                                        int64_t order_x, rf_border mode_y, rf_border mode_x,
                                        double cval, void* workspace, rf_stream stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("radius", radius_y, radius_x, 0, rf::kMaxRadius))
    return bad;
  if (const rf_status bad = rf::check_per_axis("order", order_y, order_x, 0, rf::kMaxOrder))
    return bad;
  const rf::Borders modes{mode_y, mode_x};
  if (const rf_status bad = rf::check_borders(modes)) return bad;
  if (const rf_status bad = rf::check_tileable(h, w)) return bad;
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
  if (rf::check_per_axis("radius", radius_y, radius_x, 0, rf::kMaxRadius) != RF_OK) {
    return 0;  // the call itself will say so
  }
  int64_t bytes = 0;
  rf::dispatch_float(dtype, [&](auto tag) {
    using C = rf::compute_t<typename decltype(tag)::type>;
    if (!is_fused<C>(radius_y, radius_x, order_y, order_x))
      bytes = (n * h * w + radius_y + 1 + radius_x + 1) * sizeof(C);
  });
  return bytes;
}
