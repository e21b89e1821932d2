// Kernels with one mistake each, and launches that a device would refuse: all must fail with a
// sentence about it. Names: *_bug fails in every build, *_race_bug only in _simt, *_asan_bug only
// in _simt_asan, *_refused is an invalid argument.
#include <vector>

#include "cuda/support/launch.h"
#include "selftest_list.h"

namespace rf::simt {

namespace {

// ==== barriers
__global__ void missing_barrier_kernel(const float* in, float* out) {
  RF_SHARED(float, row, [64]);
  row[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = row[63 - threadIdx.x];
}
rf_status missing_barrier() {  // without the race detector, by the poison it reads
  std::vector<float> in(64, 1.0f), out(64);
  return then(launch(missing_barrier_kernel, 1, 64, 0, nullptr, in.data(), out.data()),
              "missing barrier", [&] { return out == in; });
}

// The second round's stores may overtake the first round's loads.
__global__ void missing_second_barrier_kernel(float* out) {
  RF_SHARED(float, row, [64]);
  for (int round = 0; round < 2; ++round) {
    row[threadIdx.x] = threadIdx.x + 100.0f * round;
    __syncthreads();
    out[threadIdx.x + 64 * round] = row[63 - threadIdx.x];
  }
}
rf_status missing_second_barrier() {
  std::vector<float> out(128), expected(128);
  for (int i = 0; i < 128; ++i) expected[i] = 63.0f - i % 64 + 100.0f * (i / 64);
  return then(launch(missing_second_barrier_kernel, 1, 64, 0, nullptr, out.data()),
              "missing second barrier", [&] { return out == expected; });
}

// Works on a GPU that runs warps in step, which none promises since Volta.
__global__ void missing_syncwarp_kernel(float* out) {
  RF_SHARED(float, row, [32]);
  row[threadIdx.x] = threadIdx.x;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    if (threadIdx.x < half) row[threadIdx.x] += row[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *out = row[0];
}
rf_status missing_syncwarp() {
  float out = 0;
  return launch(missing_syncwarp_kernel, 1, 32, 0, nullptr, &out);
}

__global__ void two_writers_kernel() {
  RF_SHARED(int, winner, );
  winner = threadIdx.x;
}
rf_status two_writers() { return launch(two_writers_kernel, 1, 64, 0, nullptr); }

__global__ void plain_and_atomic_kernel() {
  RF_SHARED(int, count, );
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0) {
    atomicAdd(&count, 1);
  } else {
    count += 1;
  }
}
rf_status plain_and_atomic() { return launch(plain_and_atomic_kernel, 1, 64, 0, nullptr); }

__global__ void divergent_barrier_kernel(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = 1;
}
rf_status divergent_barrier() {
  std::vector<int> out(64);
  return launch(divergent_barrier_kernel, 1, 64, 0, nullptr, out.data());
}

__global__ void two_barriers_kernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
rf_status two_barriers() { return launch(two_barriers_kernel, 1, 64, 0, nullptr); }

__global__ void barrier_or_shuffle_kernel() {
  if (threadIdx.x < 40) __syncthreads();
  __syncwarp();
}
rf_status barrier_or_shuffle() { return launch(barrier_or_shuffle_kernel, 1, 64, 0, nullptr); }

// ==== warps
__global__ void exited_lane_kernel(int n) {
  if (threadIdx.x >= n) return;
  __shfl_down_sync(kFull, 1.0f, 1);
}
rf_status exited_lane() { return launch(exited_lane_kernel, 1, 32, 0, nullptr, 20); }

__global__ void different_collectives_kernel(int* out) {
  out[threadIdx.x] = threadIdx.x < 16 ? __any_sync(kFull, 1) : __shfl_sync(kFull, 1, 0);
}
rf_status different_collectives() {
  std::vector<int> out(32);
  return launch(different_collectives_kernel, 1, 32, 0, nullptr, out.data());
}

__global__ void wrong_mask_kernel() { __syncwarp(0x0000ffffu); }
rf_status wrong_mask() { return launch(wrong_mask_kernel, 1, 32, 0, nullptr); }

// ==== memory
__global__ void shared_row_overrun_kernel(int column) {  // out of the row, but not of the array
  RF_SHARED(float, tile, [8][8]);
  tile[threadIdx.x][column] = 1.0f;
}
rf_status shared_row_overrun() { return launch(shared_row_overrun_kernel, 1, 4, 0, nullptr, 8); }

__device__ void store_at(float* p, int i) { p[i] = 1.0f; }
__global__ void shared_overrun_kernel(int i) {
  RF_SHARED(float, buffer, [32]);
  store_at(buffer, i + threadIdx.x);
}
rf_status shared_overrun() { return launch(shared_overrun_kernel, 1, 4, 0, nullptr, 30); }
rf_status shared_underrun() { return launch(shared_overrun_kernel, 1, 4, 0, nullptr, -2); }

__global__ void dynamic_overrun_kernel(int i) {
  RF_DYNAMIC_SHARED(float, buffer);
  buffer[i + threadIdx.x] = 1.0f;
}
rf_status dynamic_overrun() { return launch(dynamic_overrun_kernel, 1, 4, 100, nullptr, 22); }

__global__ void unwritten_kernel(float* out) {
  RF_SHARED(float, row, [32]);
  if (threadIdx.x > 0) row[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
}
rf_status unwritten() {
  std::vector<float> out(32);
  return then(launch(unwritten_kernel, 1, 32, 0, nullptr, out.data()), "unwritten element",
              [&] { return out == std::vector<float>(32, 1.0f); });
}

__global__ void misaligned_kernel(const float* in, float4* out) {
  *out = *reinterpret_cast<const float4*>(in + 1);
}
rf_status misaligned() {
  alignas(16) float in[8] = {};
  alignas(16) float4 out;
  return launch(misaligned_kernel, 1, 1, 0, nullptr, &in[0], &out);
}

__global__ void misaligned_shared_kernel(
    float4* out) {  // a float array promises no more than a float's alignment
  RF_SHARED(float, row, [8]);
  for (int i = 0; i < 8; ++i) row[i] = 0.0f;
  *out = *reinterpret_cast<const float4*>(&row[0]);
}
rf_status misaligned_shared() {
  alignas(16) float4 out;
  return launch(misaligned_shared_kernel, 1, 1, 0, nullptr, &out);
}

__global__ void global_overrun_kernel(float* out) { out[threadIdx.x] = 1.0f; }
rf_status global_overrun() {
  std::vector<float> out(
      33);  // a size after which malloc leaves room that AddressSanitizer poisons
  return launch(global_overrun_kernel, 1, 36, 0, nullptr, out.data());
}

// ==== launches that a device refuses
__global__ void empty_kernel() {}
__global__ void big_dynamic_kernel() {
  RF_DYNAMIC_SHARED(char, buffer);
  buffer[0] = 0;
}
__global__ void static_and_dynamic_kernel() {
  RF_SHARED(float, row, [8 * 1024]);
  RF_DYNAMIC_SHARED(float, buffer);
  row[0] = buffer[0] = 0;
}

const Selftest kTests[] = {
    {"missing_barrier_bug", missing_barrier},
    {"missing_second_barrier_bug", missing_second_barrier},
    {"missing_syncwarp_race_bug", missing_syncwarp},
    {"two_writers_race_bug", two_writers},
    {"plain_and_atomic_race_bug", plain_and_atomic},
    {"divergent_barrier_bug", divergent_barrier},
    {"two_barriers_bug", two_barriers},
    {"barrier_or_shuffle_bug", barrier_or_shuffle},
    {"exited_lane_bug", exited_lane},
    {"different_collectives_bug", different_collectives},
    {"wrong_mask_bug", wrong_mask},
    {"shared_row_overrun_bug", shared_row_overrun},
    {"shared_overrun_bug", shared_overrun},
    {"shared_underrun_bug", shared_underrun},
    {"dynamic_overrun_bug", dynamic_overrun},
    {"unwritten_bug", unwritten},
    {"misaligned_bug", misaligned},
    {"misaligned_shared_bug", misaligned_shared},
    {"global_overrun_asan_bug", global_overrun},
    {"block_too_large_refused", [] { return launch(empty_kernel, 1, dim3(32, 33), 0, nullptr); }},
    {"block_too_deep_refused", [] { return launch(empty_kernel, 1, dim3(1, 1, 65), 0, nullptr); }},
    {"empty_grid_refused", [] { return launch(empty_kernel, 0, 32, 0, nullptr); }},
    {"grid_too_tall_refused", [] { return launch(empty_kernel, dim3(1, 65536), 32, 0, nullptr); }},
    {"dynamic_too_large_refused",
     [] { return launch(empty_kernel, 1, 32, 48 * 1024 + 1, nullptr); }},
    {"static_and_dynamic_too_large_refused",
     [] { return launch(static_and_dynamic_kernel, 1, 1, 20 * 1024, nullptr); }},
    {"allowance_too_large_refused",
     [] { return allow_dynamic_shared(big_dynamic_kernel, 228 * 1024); }},
    {"beyond_allowance_refused",
     [] {
       const rf_status status = allow_dynamic_shared(big_dynamic_kernel, 64 * 1024);
       return status != RF_OK ? status : launch(big_dynamic_kernel, 1, 1, 228 * 1024, nullptr);
     }},
};

}  // namespace

SelftestList bugs() { return {kTests, sizeof(kTests) / sizeof(kTests[0])}; }

}  // namespace rf::simt
