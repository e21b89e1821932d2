// Exact squared Euclidean distances to the nearest False pixel. First kernel: a thread per column
// walks down and up, and leaves the distance within the column (two bytes) in the workspace; a
// warp's columns are neighbours, so its reads are together. Second kernel: a thread per pixel looks
// left and right in its row, further and further, until no column there can be nearer.
#include <algorithm>

#include "common/distance_transform.h"
#include "common/dtype.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;
constexpr int kNone = 65535;  // no False pixel in the column

__global__ void __launch_bounds__(kThreads)
    columns_kernel(const uint8_t* __restrict__ mask,  // [n, h, w]
                   uint16_t* __restrict__ column,     // [n, h, w]
                   int64_t columns, int64_t h, int64_t w) {
  for (int64_t c = blockIdx.x * int64_t{kThreads} + threadIdx.x; c < columns;
       c += int64_t{gridDim.x} * kThreads) {
    const int64_t first = c / w * h * w + c % w;
    int distance = kNone;
    for (int64_t y = 0; y < h; ++y) {
      distance = mask[first + y * w] == 0 ? 0 : distance == kNone ? kNone : distance + 1;
      column[first + y * w] = static_cast<uint16_t>(distance);
    }
    distance = kNone;
    for (int64_t y = h - 1; y >= 0; --y) {
      const int above = column[first + y * w];
      distance = distance == kNone ? kNone : distance + 1;
      distance = above < distance ? above : distance;
      column[first + y * w] = static_cast<uint16_t>(distance);
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    rows_kernel(const uint16_t* __restrict__ column,  // [n, h, w]
                void* __restrict__ out,               // int32 or float [n, h, w]
                int64_t pixels, int64_t w, bool root) {
  for (int64_t p = blockIdx.x * int64_t{kThreads} + threadIdx.x; p < pixels;
       p += int64_t{gridDim.x} * kThreads) {
    const int64_t x = p % w;
    const uint16_t* row = column + (p - x);
    const int here = row[x];
    int best = here == kNone ? INT32_MAX : here * here;
    for (int64_t d = 1; d < w && d * d < best; ++d) {
      if (x - d < 0 && x + d >= w) break;
      const int left = x - d >= 0 ? row[x - d] : kNone, right = x + d < w ? row[x + d] : kNone;
      const int nearer = left < right ? left : right;
      if (nearer == kNone) continue;
      const int64_t candidate = int64_t{nearer} * nearer + d * d;
      best = candidate < best ? static_cast<int>(candidate) : best;
    }
    if (root) {
      static_cast<float*>(out)[p] =
          best == INT32_MAX ? rf::bits_float(0x7f800000u) : sqrtf(static_cast<float>(best));
    } else {
      static_cast<int32_t*>(out)[p] = best;
    }
  }
}

dim3 grid_of(int64_t items) {
  return dim3(
      static_cast<unsigned>(std::min<int64_t>((items + kThreads - 1) / kThreads, 0x7fffffff)));
}

}  // namespace

extern "C" rf_status rf_distance_transform(const uint8_t* mask, void* out, int64_t n, int64_t h,
                                           int64_t w, int root, void* workspace, rf_stream stream) {
  if (const rf_status bad = rf::check_distance_transform(n, h, w)) return bad;
  if (n * h * w == 0) return RF_OK;
  auto* column = static_cast<uint16_t*>(workspace);
  const rf_status status =
      rf::launch(columns_kernel, grid_of(n * w), kThreads, 0, stream, mask, column, n * w, h, w);
  if (status != RF_OK) return status;
  return rf::launch(rows_kernel, grid_of(n * h * w), kThreads, 0, stream, column, out, n * h * w, w,
                    root != 0);
}

extern "C" int64_t rf_distance_transform_workspace_bytes(int64_t n, int64_t h, int64_t w) {
  return n * h * w * static_cast<int64_t>(sizeof(uint16_t));
}
