// Shape of masks as counts. One block per image; a thread takes every 256th pixel and looks at its
// eight neighbours (in the L1 cache), a warp adds up by shuffles, and one lane adds to the image's
// counts. Integers: the order does not matter.
#include <algorithm>
#include <cstdint>

#include "common/status.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256, kWarp = 32, kCounts = 5;

__global__ void __launch_bounds__(kThreads)
    mask_geometry_kernel(const uint8_t* __restrict__ mask,  // [n, h, w]
                         int64_t* __restrict__ out,         // [n, 5]
                         int64_t n, int64_t h, int64_t w) {
  RF_SHARED(unsigned long long, total, [kCounts]);
  // A thread's pixels follow each other by so many rows and columns.
  const bool wide = w > kThreads;
  const int rows_on = wide ? 0 : kThreads / static_cast<int>(w);
  const int cols_on = wide ? kThreads : kThreads - rows_on * static_cast<int>(w);
  const int first_row = wide ? 0 : static_cast<int>(threadIdx.x) / static_cast<int>(w);
  for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x < kCounts) total[threadIdx.x] = 0;
    __syncthreads();
    const uint8_t* image = mask + i * h * w;
    unsigned count[kCounts] = {};  // of one thread; a block's sum may need 64 bits
    int64_t y = first_row, x = threadIdx.x - first_row * w;
    for (; y < h; y += rows_on, x += cols_on) {
      if (x >= w) ++y, x -= w;
      if (y >= h) break;
      const int64_t p = y * w + x;
      const bool first_y = y == 0, last_y = y + 1 == h, first_x = x == 0, last_x = x + 1 == w;
      const bool m = image[p] != 0;
      const bool right = !last_x && image[p + 1] != 0, down = !last_y && image[p + w] != 0;
      count[3] += (!last_x && right != m) + (!last_y && down != m);
      if (!m) continue;
      const bool left = !first_x && image[p - 1] != 0, up = !first_y && image[p - w] != 0;
      const bool four = left || right || up || down;
      const bool corner =
          (!first_y &&
           ((!first_x && image[p - w - 1] != 0) || (!last_x && image[p - w + 1] != 0))) ||
          (!last_y && ((!first_x && image[p + w - 1] != 0) || (!last_x && image[p + w + 1] != 0)));
      count[0] += 1;
      count[1] += !four;
      count[2] += !four && !corner;
      count[4] += first_y || last_y || first_x || last_x;
    }
    for (int k = 0; k < kCounts; ++k) {
      unsigned long long sum = count[k];
      for (int half = kWarp / 2; half > 0; half /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, half);
      }
      if (threadIdx.x % kWarp == 0) atomicAdd(&total[k], sum);
    }
    __syncthreads();
    if (threadIdx.x < kCounts) {
      out[i * kCounts + threadIdx.x] = static_cast<int64_t>(total[threadIdx.x]);
    }  // and the same threads set the counts to zero for the next image
  }
}

}  // namespace

extern "C" rf_status rf_mask_geometry(const uint8_t* mask, int64_t* out, int64_t n, int64_t h,
                                      int64_t w, void*, rf_stream stream) {
  if (n == 0) return RF_OK;
  const unsigned grid = static_cast<unsigned>(std::min<int64_t>(n, 1 << 20));
  return rf::launch(mask_geometry_kernel, grid, kThreads, 0, stream, mask, out, n, h, w);
}

extern "C" int64_t rf_mask_geometry_workspace_bytes(int64_t, int64_t, int64_t) { return 0; }
