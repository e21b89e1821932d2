// Kernels with one mistake each: the interpreter must fail each of them with a sentence about it.
#include "selftest_list.h"

namespace rf::ptx {
namespace {

std::vector<float> numbers(size_t n) { return std::vector<float>(n, 1.0f); }

// ---- races in shared memory
__global__ void missing_barrier_kernel(const float* in, float* out) {
  __shared__ float row[64];
  row[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = row[63 - threadIdx.x];
}
rf_status missing_barrier() {
  std::vector<float> in = numbers(64), out(64);
  return run(missing_barrier_kernel, 1, 64, 0, input(in), output(out));
}

// The second round's stores may overtake the first round's loads.
__global__ void missing_second_barrier_kernel(float* out) {
  __shared__ float row[64];
  for (int round = 0; round < 2; ++round) {
    row[threadIdx.x] = threadIdx.x + 100.0f * round;
    __syncthreads();
    out[threadIdx.x + 64 * round] = row[63 - threadIdx.x];
  }
}
rf_status missing_second_barrier() {
  std::vector<float> out(128);
  return run(missing_second_barrier_kernel, 1, 64, 0, output(out));
}

// Works on a GPU that runs warps in step, which none promises since Volta.
__global__ void missing_syncwarp_kernel(float* out) {
  __shared__ volatile float row[32];
  row[threadIdx.x] = threadIdx.x;
  __syncwarp();
  for (int half = 16; half > 0; half /= 2)
    if (threadIdx.x < half) row[threadIdx.x] += row[threadIdx.x + half];
  if (threadIdx.x == 0) *out = row[0];
}
rf_status missing_syncwarp() {
  std::vector<float> out(1);
  return run(missing_syncwarp_kernel, 1, 32, 0, output(out));
}

// A shuffle is a meeting, but does not order memory.
__global__ void shuffle_is_no_fence_kernel(int* out) {
  __shared__ volatile int row[32];
  row[threadIdx.x] = threadIdx.x;
  const int next = __shfl_sync(kFullMask, static_cast<int>(threadIdx.x) ^ 1, threadIdx.x);
  out[threadIdx.x] = row[next];
}
rf_status shuffle_is_no_fence() {
  std::vector<int> out(32);
  return run(shuffle_is_no_fence_kernel, 1, 32, 0, output(out));
}

__global__ void two_writers_kernel(int* out) {
  __shared__ int winner;
  winner = threadIdx.x;
  __syncthreads();
  *out = winner;
}
rf_status two_writers() {
  std::vector<int> out(1);
  return run(two_writers_kernel, 1, 64, 0, output(out));
}

__global__ void plain_and_atomic_kernel(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x % 2 == 0) {
    atomicAdd(&count, 1);
  } else {
    count += 1;
  }
  __syncthreads();
  *out = count;
}
rf_status plain_and_atomic() {
  std::vector<int> out(1);
  return run(plain_and_atomic_kernel, 1, 64, 0, output(out));
}

// ---- races in global memory
__global__ void global_race_kernel(float* buffer, float* out) {
  buffer[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = buffer[63 - threadIdx.x];
}
rf_status global_race() {
  std::vector<float> buffer(64), out(64);
  return run(global_race_kernel, 1, 64, 0, both(buffer), output(out));
}

__global__ void race_between_blocks_kernel(int* out) { out[0] = blockIdx.x + 1; }
rf_status race_between_blocks() {
  std::vector<int> out(1);
  return run(race_between_blocks_kernel, 2, 1, 0, output(out));
}

// __restrict__ promises that nobody writes what is read: the read-only cache may be stale.
__global__ void broken_promise_kernel(const float* __restrict__ in, float* __restrict__ out) {
  out[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x + 64] = in[(threadIdx.x + 1) % 64 + 64];
}
rf_status broken_promise() {
  std::vector<float> buffer(128);
  return run(broken_promise_kernel, 1, 64, 0, both(buffer), both(buffer));
}

// ---- barriers and collectives
__global__ void divergent_barrier_kernel(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  out[threadIdx.x] = 1;
}
rf_status divergent_barrier() {
  std::vector<int> out(64);
  return run(divergent_barrier_kernel, 1, 64, 0, output(out));
}

__global__ void split_warp_barrier_kernel(const int* in, int* out) {
  if (in[threadIdx.x]) {
    out[threadIdx.x] = 1;
    __syncthreads();
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
  }
}
rf_status split_warp_barrier() {
  std::vector<int> in(32, 1), out(32);
  in[5] = 0;
  return run(split_warp_barrier_kernel, 1, 32, 0, input(in), output(out));
}

__global__ void two_barriers_kernel(int* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] += 2;
  } else {
    out[threadIdx.x] = 3;
    __syncthreads();
    out[threadIdx.x] += 4;
  }
}
rf_status two_barriers() {
  std::vector<int> out(64);
  return run(two_barriers_kernel, 1, 64, 0, output(out));
}

__global__ void exited_lane_kernel(int n, int* out) {
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = __shfl_down_sync(kFullMask, static_cast<int>(threadIdx.x), 1);
}
rf_status exited_lane() {
  std::vector<int> out(32);
  return run(exited_lane_kernel, 1, 32, 0, 20, output(out));
}

__global__ void absent_lanes_kernel(const int* in, int* out) {
  if (in[threadIdx.x] < 16) out[threadIdx.x] = __any_sync(kFullMask, in[threadIdx.x] == 3);
  __syncthreads();
}
rf_status absent_lanes() {
  std::vector<int> in(32), out(32);
  for (int i = 0; i < 32; ++i) in[i] = i;
  return run(absent_lanes_kernel, 1, 32, 0, input(in), output(out));
}

__global__ void wrong_mask_kernel(const unsigned* masks) { __syncwarp(masks[0]); }
rf_status wrong_mask() {
  std::vector<unsigned> masks = {0x0000ffffu};
  return run(wrong_mask_kernel, 1, 32, 0, input(masks));
}

// ---- addresses
__global__ void shared_overrun_kernel(int i, float* out) {
  __shared__ float buffer[32];
  buffer[threadIdx.x] = 0.0f;
  buffer[i + threadIdx.x] = 1.0f;
  out[threadIdx.x] = buffer[threadIdx.x];
}
rf_status shared_overrun() {
  std::vector<float> out(4);
  return run(shared_overrun_kernel, 1, 4, 0, 30, output(out));
}

__global__ void dynamic_overrun_kernel(int i) {
  extern __shared__ float dynamic[];
  dynamic[i + threadIdx.x] = 1.0f;
}
rf_status dynamic_overrun() { return run(dynamic_overrun_kernel, 1, 4, 100, 22); }

__global__ void global_read_kernel(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x + 1];
}
rf_status global_overrun_read() {
  std::vector<float> in = numbers(32), out(32);
  return run(global_read_kernel, 1, 32, 0, input(in), output(out));
}
__global__ void global_write_kernel(float* out) { out[threadIdx.x] = 1.0f; }
rf_status global_overrun_write() {
  std::vector<float> out(31);
  return run(global_write_kernel, 1, 32, 0, output(out));
}
__global__ void const_write_kernel(const float* in) { const_cast<float*>(in)[threadIdx.x] = 2.0f; }
rf_status const_write() {
  std::vector<float> in = numbers(32);
  return run(const_write_kernel, 1, 32, 0, input(in));
}
__global__ void local_overrun_kernel(const int* in, int* out) {
  int values[8];
  for (int i = 0; i < 8; ++i) values[i] = in[i];
  out[threadIdx.x] = values[in[threadIdx.x] * 2];
}
rf_status local_overrun() {
  std::vector<int> in = {0, 1, 2, 3, 4, 5, 6, 7}, out(8);
  return run(local_overrun_kernel, 1, 8, 0, input(in), output(out));
}
__global__ void misaligned_kernel(const float* in, float4* out) {
  *out = *reinterpret_cast<const float4*>(in + 1);
}
rf_status misaligned() {
  std::vector<float> in = numbers(8), out(4);
  return run(misaligned_kernel, 1, 1, 0, input(in), output(out));
}

// ---- memory that nobody wrote
__global__ void unwritten_kernel(float* out) {
  __shared__ float row[32];
  if (threadIdx.x > 0) row[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
}
rf_status unwritten_shared() {
  std::vector<float> out(32);
  return run(unwritten_kernel, 1, 32, 0, output(out));
}
__global__ void unwritten_workspace_kernel(float* work, float* out) {
  if (threadIdx.x != 7) work[threadIdx.x] = 1.0f;
  out[threadIdx.x] = work[threadIdx.x];
}
rf_status unwritten_workspace() {
  std::vector<float> work(32), out(32);
  return run(unwritten_workspace_kernel, 1, 32, 0, output(work), output(out));
}

// ---- what a device refuses, or never finishes
__global__ void __launch_bounds__(64) bounded_kernel(float* out) { out[threadIdx.x] = 1.0f; }
rf_status too_many_threads() {
  std::vector<float> out(65);
  return run(bounded_kernel, 1, 65, 0, output(out));
}
rf_status too_much_shared() { return run(dynamic_overrun_kernel, 1, 4, 49 * 1024, 0); }
rf_status empty_grid() {
  std::vector<float> out(1);
  return run(bounded_kernel, 0, 1, 0, output(out));
}
__global__ void endless_kernel(volatile int* out) {
  while (*out == 0) {
  }
}
rf_status endless() {
  std::vector<int> out(1);
  return run(endless_kernel, 1, 1, 0, both(out));
}

}  // namespace

std::vector<Selftest> wrong_kernels() {
  return {{"missing_barrier_bug", missing_barrier},
          {"missing_second_barrier_bug", missing_second_barrier},
          {"missing_syncwarp_bug", missing_syncwarp},
          {"shuffle_is_no_fence_bug", shuffle_is_no_fence},
          {"two_writers_bug", two_writers},
          {"plain_and_atomic_bug", plain_and_atomic},
          {"global_race_bug", global_race},
          {"race_between_blocks_bug", race_between_blocks},
          {"broken_promise_bug", broken_promise},
          {"divergent_barrier_bug", divergent_barrier},
          {"split_warp_barrier_bug", split_warp_barrier},
          {"two_barriers_bug", two_barriers},
          {"exited_lane_bug", exited_lane},
          {"absent_lanes_bug", absent_lanes},
          {"wrong_mask_bug", wrong_mask},
          {"shared_overrun_bug", shared_overrun},
          {"dynamic_overrun_bug", dynamic_overrun},
          {"global_overrun_read_bug", global_overrun_read},
          {"global_overrun_write_bug", global_overrun_write},
          {"const_write_bug", const_write},
          {"local_overrun_bug", local_overrun},
          {"misaligned_bug", misaligned},
          {"unwritten_shared_bug", unwritten_shared},
          {"unwritten_workspace_bug", unwritten_workspace},
          {"too_many_threads_bug", too_many_threads},
          {"too_much_shared_bug", too_much_shared},
          {"empty_grid_bug", empty_grid},
          {"endless_bug", endless}};
}

}  // namespace rf::ptx
