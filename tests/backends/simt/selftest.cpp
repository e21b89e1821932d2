// Whole kernels of the usual kinds: each launch must succeed, and give what the host computes.
#include "selftest.h"

#include <cstring>
#include <string>
#include <vector>

#include "cuda/support/launch.h"
#include "selftest_list.h"

namespace rf::simt {

namespace {

// ==== sum of a block by a tree in shared memory
template <int kThreads>
__global__ void block_reduce_kernel(const float* __restrict__ in, float* __restrict__ out) {
  RF_SHARED(float, partial, [kThreads]);
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * kThreads + t];
  __syncthreads();
#pragma unroll
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

rf_status block_reduce() {
  std::vector<float> in(4 * 256), out(4), expected(4);
  for (size_t i = 0; i < in.size(); ++i) expected[i / 256] += in[i] = static_cast<float>(i % 97);
  return then(launch(block_reduce_kernel<256>, 4, 256, 0, nullptr, in.data(), out.data()),
              "block sum", [&] { return out == expected; });
}

// ==== the same by shuffles, with one value per warp in shared memory
template <typename T>
__device__ __forceinline__ T warp_sum(T v) {
  for (int delta = 16; delta > 0; delta /= 2) v += __shfl_down_sync(kFull, v, delta);
  return v;
}

template <typename T>
__global__ void __launch_bounds__(256) warp_reduce_kernel(const T* in, T* out) {
  RF_SHARED(T, warp_sums, [8]);
  RF_SHARED(T, total, );
  const int lane = threadIdx.x % warpSize, warp = threadIdx.x / warpSize;
  const T v = warp_sum(in[threadIdx.x]);
  if (lane == 0) warp_sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    const T sum = warp_sum(lane < 8 ? warp_sums[lane] : T(0));
    if (lane == 0) total = sum;
  }
  __syncthreads();
  out[threadIdx.x] = total;
}

template <typename T>
rf_status warp_reduce() {
  std::vector<T> in(256), out(256);
  T expected = 0;
  for (int i = 0; i < 256; ++i) expected += in[i] = static_cast<T>(i - 100);
  return then(launch(warp_reduce_kernel<T>, 1, 256, 0, nullptr, in.data(), out.data()), "warp sum",
              [&] { return out == std::vector<T>(256, expected); });
}

// ==== histogram: shared atomics, then global ones
__global__ void histogram_kernel(const unsigned char* in, int n, unsigned* bins) {
  RF_SHARED(unsigned, local, [64]);
  for (int i = threadIdx.x; i < 64; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[in[i] % 64], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) atomicAdd(bins + i, local[i]);
}

rf_status histogram() {
  std::vector<unsigned char> in(5000);
  std::vector<unsigned> bins(64), expected(64);
  for (size_t i = 0; i < in.size(); ++i)
    ++expected[(in[i] = static_cast<unsigned char>(i * i)) % 64];
  return then(launch(histogram_kernel, 3, 128, 0, nullptr, in.data(), 5000, bins.data()),
              "histogram", [&] { return bins == expected; });
}

// ==== transposed tile, with the tile passed to device functions in the ways kernels do
constexpr int kTile = 16;

__device__ void put(float* row, int x, float v) { row[x] = v; }
template <int kPitch>
__device__ float get(const float (*tile)[kPitch], int y, int x) {
  return tile[y][x];
}

__global__ void transpose_kernel(const float* in, float* out, int h, int w) {
  RF_SHARED(float, tile, [kTile][kTile + 1]);
  const int x0 = blockIdx.x * kTile, y0 = blockIdx.y * kTile, tx = threadIdx.x, ty = threadIdx.y;
  if (x0 + tx < w && y0 + ty < h) put(tile[ty], tx, in[(y0 + ty) * w + x0 + tx]);
  __syncthreads();
  if (x0 + ty < w && y0 + tx < h) out[(x0 + ty) * h + y0 + tx] = get(tile, tx, ty);
}

rf_status transpose() {
  const int h = 37, w = 53;
  std::vector<float> in(h * w), out(h * w), expected(h * w);
  for (int i = 0; i < h * w; ++i) expected[i % w * h + i / w] = in[i] = static_cast<float>(i);
  const dim3 grid((w + kTile - 1) / kTile, (h + kTile - 1) / kTile);
  return then(
      launch(transpose_kernel, grid, dim3(kTile, kTile), 0, nullptr, in.data(), out.data(), h, w),
      "transposed tile", [&] { return out == expected; });
}

// ==== 3-D grid of 3-D blocks: every cell is visited once
__global__ void grid_3d_kernel(int* visits) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
            z = blockIdx.z * blockDim.z + threadIdx.z;
  const int nx = gridDim.x * blockDim.x, ny = gridDim.y * blockDim.y;
  atomicAdd(&visits[(z * ny + y) * nx + x], 1 + 10 * x + 1000 * y + 100000 * z);
}

rf_status grid_3d() {
  const dim3 grid(3, 2, 4), block(4, 5, 2);
  std::vector<int> visits(12 * 10 * 8), expected;
  for (int z = 0; z < 8; ++z) {
    for (int y = 0; y < 10; ++y) {
      for (int x = 0; x < 12; ++x) expected.push_back(1 + 10 * x + 1000 * y + 100000 * z);
    }
  }
  return then(launch(grid_3d_kernel, grid, block, 0, nullptr, visits.data()), "3-D indices",
              [&] { return visits == expected; });
}

// ==== dynamic shared memory, more than 48 KB of it
__global__ void dynamic_shared_kernel(const double* in, double* out, int n) {
  RF_DYNAMIC_SHARED(double, row);
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = row[n - 1 - i];
}

rf_status dynamic_shared_memory() {
  const int n = 10000;
  std::vector<double> in(n), out(n), expected(n);
  for (int i = 0; i < n; ++i) expected[n - 1 - i] = in[i] = i;
  rf_status status = allow_dynamic_shared(dynamic_shared_kernel, n * sizeof(double));
  if (status == RF_OK) {
    status =
        launch(dynamic_shared_kernel, 1, 96, n * sizeof(double), nullptr, in.data(), out.data(), n);
  }
  return then(status, "reversed row", [&] { return out == expected; });
}

const Selftest kTests[] = {
    {"block_reduce", block_reduce},
    {"warp_reduce_float", warp_reduce<float>},
    {"warp_reduce_double", warp_reduce<double>},
    {"warp_reduce_int", warp_reduce<int>},
    {"histogram", histogram},
    {"transpose", transpose},
    {"grid_3d", grid_3d},
    {"dynamic_shared_memory", dynamic_shared_memory},
};

}  // namespace

SelftestList whole_kernels() { return {kTests, sizeof(kTests) / sizeof(kTests[0])}; }

const char* selftest_names() {
  static std::string names;
  names.clear();
  for (const SelftestList& list : {whole_kernels(), features(), bugs()}) {
    for (size_t i = 0; i < list.size; ++i) names += std::string(list.tests[i].name) + " ";
  }
  return names.c_str();
}

rf_status selftest(const char* name) {
  for (const SelftestList& list : {whole_kernels(), features(), bugs()}) {
    for (size_t i = 0; i < list.size; ++i) {
      if (strcmp(list.tests[i].name, name) == 0) return list.tests[i].run();
    }
  }
  return fail(RF_INVALID_ARGUMENT, "no selftest is called %s", name);
}

}  // namespace rf::simt
