// Maximum filter on CUDA. Two routes:
//  - fused, when a tile with its halo fits twice in the device's shared memory (float: size up to
//    41 where a block may have 64 KB, 90 for 163 KB): one kernel, each pixel read once (halos come
//    from the L2 cache) and written once; windows of 4, 16, ... pixels are grown by steps, so the
//    work per pixel is the logarithm of the size;
//  - through the workspace for larger sizes: one van Herk / Gil-Werman kernel per axis,
//    three maxima per pixel.
#include <type_traits>

#include "common/filter_args.h"
#include "common/max_window.h"
#include "cuda/support/launch.h"
#include "cuda/support/tiles.h"

namespace {

using rf::kTileHeight;
using rf::kTileThreadsX;
using rf::kTileThreadsY;
using rf::kTileWidth;

constexpr int kThreads = kTileThreadsX * kTileThreadsY;

template <typename K>
__device__ __forceinline__ K max_of(K a, K b) {
  return a > b ? a : b;
}

// Windows grown step by step along one axis of a tile in shared memory,
// from `tile` to `spare` and back. After the call tile[i] is the maximum
// of `covered` pixels from i on, and 4 * covered >= size.
template <typename K>
__device__ __forceinline__ int grow_windows(K*& tile, K*& spare, int rows, int cols, int pitch,
                                            int stride, int size) {
  int covered = 1;
  while (4 * covered < size) {
    if (stride == 1) {
      cols -= 3 * covered;
    } else {
      rows -= 3 * covered;
    }
    const int step = covered * stride;
    for (int r = threadIdx.y; r < rows; r += kTileThreadsY) {
      for (int c = threadIdx.x; c < cols; c += kTileThreadsX) {
        const K* from = tile + r * pitch + c;
        spare[r * pitch + c] =
            max_of(max_of(from[0], from[step]), max_of(from[2 * step], from[3 * step]));
      }
    }
    __syncthreads();
    K* grown = spare;
    spare = tile;
    tile = grown;
    covered *= 4;
  }
  return covered;
}

// The maximum of `size` pixels from `from` on: up to four
// windows of `covered` pixels, the last one overlapping.
template <typename K>
__device__ __forceinline__ K cover_window(const K* from, int stride, int covered, int size) {
  K best = from[0];
  for (int start = covered; start < size; start += covered) {
    const int inside = start < size - covered ? start : size - covered;
    best = max_of(from[inside * stride], best);
  }
  return best;
}

// kSize pixels from `from` on, in the order of cover_window.
template <int kSize, typename K>
__device__ __forceinline__ K max_of_next(const K* from, int stride) {
  K best = from[0];
#pragma unroll
  for (int k = 1; k < kSize; ++k) best = max_of(from[k * stride], best);
  return best;
}

// Blocks per multiprocessor that leave a thread registers enough (40 for six, 48 for five, 64 for
// four): left to itself, ptxas aims higher for some types and spills.
template <typename T, int kSize>
constexpr int kFusedBlocks = kSize == 3       ? 6
                             : sizeof(T) == 4 ? 5
                                              : 4;

// What a tile holds. Bytes as words where windows are small: with bytes ptxas wants twice the
// registers.
template <typename T, int kSize>
using tile_key_t = std::conditional_t<sizeof(T) == 1 && kSize == 3, uint32_t, rf::max_key_t<T>>;

// Both axes of one tile per block of 32 x 8 threads; a warp takes a row, neighbouring threads
// neighbouring columns. Reads every pixel once from global memory (plus the halo, cached) and
// writes it once. kSize: both sizes if known at compile time, else 0; a thread then keeps the
// pixels of four windows below each other in registers.
template <typename T, int kSize>
__global__ void __launch_bounds__(kThreads, kFusedBlocks<T, kSize>)
    maximum_fused_kernel(const T* __restrict__ in,  // [n, h, w]
                         T* __restrict__ out,       // [n, h, w]
                         const rf::Tiling tiling, const rf::MaxWindow window_y,
                         const rf::MaxWindow window_x, rf::Borders modes, T cval) {
  using K = tile_key_t<T, kSize>;
  RF_DYNAMIC_SHARED(K, shared);
  const int size_y = kSize ? kSize : static_cast<int>(window_y.size()),
            size_x = kSize ? kSize : static_cast<int>(window_x.size());
  const int rows = kTileHeight + size_y - 1, pitch = kTileWidth<K> + size_x - 1;
  for (int64_t t = blockIdx.x; t < tiling.total; t += gridDim.x) {
    const rf::Tile where = rf::tile_at(tiling, t, kTileWidth<K>);
    const int cols = where.width + size_x - 1;
    K *tile = shared, *spare = shared + rows * pitch;  // each [rows, pitch]
    rf::load_tile(in + where.first_pixel, tiling.h, tiling.w,
                  where.y - static_cast<int>(window_y.before),
                  where.x - static_cast<int>(window_x.before), rows, cols, pitch, modes,
                  static_cast<K>(rf::to_max_key(cval)), tile,
                  [](T v) { return static_cast<K>(rf::to_max_key(v)); });
    __syncthreads();
    if constexpr (kSize > 0) {
      constexpr int kPerThread = kTileHeight / kTileThreadsY;
      const int first = threadIdx.y * kPerThread;
      for (int c = threadIdx.x; c < cols; c += kTileThreadsX) {
        K window[kPerThread + kSize - 1];
#pragma unroll
        for (int i = 0; i < kPerThread + kSize - 1; ++i) window[i] = tile[(first + i) * pitch + c];
#pragma unroll
        for (int i = 0; i < kPerThread; ++i)
          spare[(first + i) * pitch + c] = max_of_next<kSize>(window + i, 1);
      }
    } else {
      const int covered_y = grow_windows(tile, spare, rows, cols, pitch, pitch, size_y);
      for (int r = threadIdx.y; r < kTileHeight; r += kTileThreadsY) {
        for (int c = threadIdx.x; c < cols; c += kTileThreadsX) {
          spare[r * pitch + c] = cover_window(tile + r * pitch + c, pitch, covered_y, size_y);
        }
      }
    }
    __syncthreads();
    const int covered_x =
        kSize ? 1 : grow_windows(spare, tile, kTileHeight, cols, pitch, 1, size_x);
    for (int r = threadIdx.y; r < kTileHeight && where.y + r < tiling.h; r += kTileThreadsY) {
      T* row = out + where.first_pixel + static_cast<int64_t>(where.y + r) * tiling.w + where.x;
      for (int c = threadIdx.x; c < where.width; c += kTileThreadsX) {
        const K* from = spare + r * pitch + c;
        K best;
        if constexpr (kSize > 0) {
          best = max_of_next<kSize>(from, 1);
        } else {
          best = cover_window(from, 1, covered_x, size_x);
        }
        row[c] = rf::from_max_key<T>(static_cast<rf::max_key_t<T>>(best));
      }
    }
    __syncthreads();  // the next tile overwrites shared memory
  }
}

// One axis for any size. A thread takes `size` successive outputs of one line: backwards over the
// first `size` inputs it leaves suffix maxima in `out`, forwards over the next it joins prefix
// maxima to them. Reads each pixel twice and writes it twice. Neighbouring threads take
// neighbouring lines: coalesced along columns; along rows each thread walks its own cache lines.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    maximum_axis_kernel(const T* __restrict__ in, T* __restrict__ out, int64_t n, int h, int w,
                        bool along_rows, const rf::MaxWindow window, rf_border mode, T cval) {
  using K = rf::max_key_t<T>;
  const int length = along_rows ? w : h, lines = along_rows ? h : w;
  const int64_t stride = along_rows ? 1 : w, line_stride = along_rows ? w : 1;
  const int size = static_cast<int>(window.size()), segments = (length + size - 1) / size;
  const int64_t per_image = static_cast<int64_t>(segments) * lines;
  for (int64_t i = blockIdx.x * int64_t{kThreads} + threadIdx.x; i < n * per_image;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t image = i / per_image;
    const int segment = static_cast<int>((i - image * per_image) / lines);
    const int64_t line = i - image * per_image - static_cast<int64_t>(segment) * lines;
    const int64_t offset = image * h * w + line * line_stride;
    const int first = segment * size, outputs = length - first < size ? length - first : size;
    const int before_first = first - static_cast<int>(window.before);
    const T* source = in + offset;
    T* result = out + offset + first * stride;
    const auto at = [&](int p) {
      const int index = rf::border_index_as<int>(before_first + p, length, mode);
      return rf::to_max_key(index < 0 ? cval : source[index * stride]);
    };
    K best = at(size - 1);
    for (int p = size - 1; p >= 0; --p) {
      best = max_of(at(p), best);
      if (p < outputs) result[p * stride] = rf::from_max_key<T>(best);
    }
    if (outputs == 1) continue;
    best = at(size);
    for (int p = 1; p < outputs; ++p) {
      best = max_of(at(size - 1 + p), best);
      const K suffix = rf::to_max_key(result[p * stride]);
      result[p * stride] = rf::from_max_key<T>(max_of(suffix, best));
    }
  }
}

// Whether a tile fits in the shared memory that the current device has for a block.
template <typename K>
rf_status is_fused(const rf::MaxWindow& window_y, const rf::MaxWindow& window_x, bool* fused,
                   size_t* shared_bytes) {
  size_t limit = 0;
  const rf_status status = rf::shared_memory_limit(&limit);
  if (status != RF_OK) return status;
  // Bound each factor first: the product of huge windows would overflow.
  const int64_t max_size = static_cast<int64_t>(limit / sizeof(K));
  *fused = false;
  if (window_y.size() > max_size || window_x.size() > max_size) return RF_OK;
  const int64_t pixels =
      (kTileHeight + window_y.size() - 1) * (kTileWidth<K> + window_x.size() - 1);
  *shared_bytes = 2 * pixels * sizeof(K);
  *fused = *shared_bytes <= limit;
  return RF_OK;
}

template <typename T>
rf_status run(const T* in, T* out, int64_t n, int64_t h, int64_t w, const rf::MaxWindow& window_y,
              const rf::MaxWindow& window_x, rf::Borders modes, T cval, void* workspace,
              rf_stream stream) {
  using K = rf::max_key_t<T>;
  size_t shared_bytes = 0;
  bool fused = false;
  if (const rf_status bad = is_fused<K>(window_y, window_x, &fused, &shared_bytes)) return bad;
  if (fused) {
    const rf::Tiling tiling(n, h, w, kTileWidth<K>);
    const bool small = window_y.size() == 3 && window_x.size() == 3;
    const auto kernel = small ? maximum_fused_kernel<T, 3> : maximum_fused_kernel<T, 0>;
    if (small) shared_bytes = shared_bytes / sizeof(K) * sizeof(tile_key_t<T, 3>);
    if (shared_bytes > rf::kSharedLimit) {
      if (const rf_status bad = rf::allow_dynamic_shared(kernel, shared_bytes)) return bad;
    }
    return rf::launch(kernel, tiling.grid(), dim3(kTileThreadsX, kTileThreadsY), shared_bytes,
                      stream, in, out, tiling, window_y, window_x, modes, cval);
  }
  T* between = static_cast<T*>(workspace);
  const auto blocks = [&](int64_t length, int64_t lines, const rf::MaxWindow& window) {
    const int64_t threads = n * ((length + window.size() - 1) / window.size()) * lines;
    return dim3(static_cast<unsigned>(std::min((threads + kThreads - 1) / kThreads, rf::kMaxGrid)));
  };
  const rf_status status = rf::launch(maximum_axis_kernel<T>, blocks(h, w, window_y), kThreads, 0,
                                      stream, in, between, n, h, w, false, window_y, modes.y, cval);
  if (status != RF_OK) return status;
  return rf::launch(maximum_axis_kernel<T>, blocks(w, h, window_x), kThreads, 0, stream, between,
                    out, n, h, w, true, window_x, modes.x, cval);
}

}  // namespace

extern "C" rf_status rf_maximum_filter(const void* in, void* out, rf_dtype dtype, int64_t n,
                                       int64_t h, int64_t w, int64_t size_y, int64_t size_x,
                                       int64_t origin_y, int64_t origin_x, rf_border mode_y,
                                       rf_border mode_x, double cval, void* workspace,
                                       rf_stream stream) {
  if (const rf_status bad = rf::check_images(in, out, n, h, w)) return bad;
  if (const rf_status bad = rf::check_per_axis("size", size_y, size_x, 1, rf::kMaxWindow))
    return bad;
  if (const rf_status bad = rf::check_origin(size_y, size_x, origin_y, origin_x)) return bad;
  if (const rf_status bad = rf::check_borders({mode_y, mode_x})) return bad;
  if (const rf_status bad = rf::check_tileable(h, w)) return bad;
  if (n * h * w == 0) return RF_OK;
  rf_status status = RF_OK;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    status =
        run(static_cast<const T*>(in), static_cast<T*>(out), n, h, w,
            rf::max_window(size_y, origin_y, h), rf::max_window(size_x, origin_x, w),
            {mode_y, mode_x}, rf::store<T>(static_cast<rf::compute_t<T>>(cval)), workspace, stream);
  });
  return known ? status : rf::fail_dtype("maximum_filter", dtype);
}

extern "C" int64_t rf_maximum_filter_workspace_bytes(rf_dtype dtype, int64_t n, int64_t h,
                                                     int64_t w, int64_t size_y, int64_t size_x,
                                                     int64_t origin_y, int64_t origin_x) {
  if (rf::check_per_axis("size", size_y, size_x, 1, rf::kMaxWindow) != RF_OK ||
      rf::check_origin(size_y, size_x, origin_y, origin_x) != RF_OK) {
    return 0;  // the call itself will say so
  }
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t shared_bytes = 0;
    bool fused = false;
    is_fused<rf::max_key_t<T>>(rf::max_window(size_y, origin_y, h),
                               rf::max_window(size_x, origin_x, w), &fused, &shared_bytes);
    if (!fused) bytes = n * h * w * static_cast<int64_t>(sizeof(T));
  });
  return bytes;
}
