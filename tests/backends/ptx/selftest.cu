// Right kernels: what hardware allows must pass, with the result that hardware has.
#include <numeric>

#include "selftest.h"
#include "selftest_list.h"

namespace rf::ptx {
namespace {

// ---- barriers, shared memory, atomics
__global__ void reverse_kernel(const float* in, float* out) {
  __shared__ float row[256];
  row[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = row[255 - threadIdx.x];
}
rf_status reverse() {
  std::vector<float> in(1024), out(1024);
  std::iota(in.begin(), in.end(), 0.0f);
  const rf_status status = run(reverse_kernel, 4, 256, 0, input(in), output(out));
  return then(status, [&] { return out[0] == 255 && out[255] == 0 && out[1023] == 768; });
}

__global__ void histogram_kernel(const int* in, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[threadIdx.x] & 7], 1);
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
rf_status histogram() {
  std::vector<int> in(96), out(8);
  std::iota(in.begin(), in.end(), 0);
  const rf_status status = run(histogram_kernel, 1, 96, 0, input(in), output(out));
  return then(status, [&] { return out == std::vector<int>(8, 12); });
}

// Every thread stores the same value: not a race.
__global__ void same_value_kernel(int* out) {
  __shared__ int flag;
  flag = 7;
  __syncthreads();
  out[threadIdx.x] = flag;
}
rf_status same_value() {
  std::vector<int> out(64);
  const rf_status status = run(same_value_kernel, 1, 64, 0, output(out));
  return then(status, [&] { return out == std::vector<int>(64, 7); });
}

// ---- warps
__global__ void warp_sum_kernel(const int* in, int* out) {
  int v = in[threadIdx.x];
  for (int half = 16; half > 0; half /= 2) v += __shfl_down_sync(kFullMask, v, half);
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}
rf_status warp_sum() {
  std::vector<int> in(64, 1), out(2);
  const rf_status status = run(warp_sum_kernel, 1, 64, 0, input(in), output(out));
  return then(status, [&] { return out == std::vector<int>(2, 32); });
}

__global__ void syncwarp_kernel(const int* in, int* out) {
  __shared__ int row[32];
  row[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    const int other = threadIdx.x < half ? row[threadIdx.x + half] : 0;
    __syncwarp();
    if (threadIdx.x < half) row[threadIdx.x] += other;
    __syncwarp();
  }
  if (threadIdx.x == 0) *out = row[0];
}
rf_status syncwarp() {
  std::vector<int> in(32, 3), out(1);
  const rf_status status = run(syncwarp_kernel, 1, 32, 0, input(in), output(out));
  return then(status, [&] { return out[0] == 96; });
}

// Lanes take different ways and meet again.
__global__ void diverge_kernel(const int* in, int* out) {
  int steps = 0;
  for (int n = in [threadIdx.x]; n > 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
  const unsigned odd = __ballot_sync(kFullMask, steps % 2);
  out[threadIdx.x] = steps + (odd >> 31 ? 1000 : 0);
}
rf_status diverge() {
  std::vector<int> in(32), out(32), expected(32);
  std::iota(in.begin(), in.end(), 1);
  for (int i = 0; i < 32; ++i)
    for (int n = i + 1; n > 1; ++expected[i]) n = n % 2 ? 3 * n + 1 : n / 2;
  if (expected[31] % 2)
    for (int& e : expected) e += 1000;
  const rf_status status = run(diverge_kernel, 1, 32, 0, input(in), output(out));
  return then(status, [&] { return out == expected; });
}

__global__ void block_vote_kernel(const int* in, int* out) {
  out[threadIdx.x] =
      __syncthreads_or(in[threadIdx.x] == 40) + 2 * __syncthreads_count(in[threadIdx.x] < 5);
}
rf_status block_vote() {
  std::vector<int> in(64), out(64);
  std::iota(in.begin(), in.end(), 0);
  const rf_status status = run(block_vote_kernel, 1, 64, 0, input(in), output(out));
  return then(status, [&] { return out == std::vector<int>(64, 11); });
}

// ---- memory
__constant__ float kTable[3] = {0.5f, 1.5f, 2.5f};
__global__ void table_kernel(const int* in, float* out) {
  out[threadIdx.x] = kTable[in[threadIdx.x]];
}
rf_status constant_table() {
  std::vector<int> in = {2, 0, 1};
  std::vector<float> out(3);
  const rf_status status = run(table_kernel, 1, 3, 0, input(in), output(out));
  return then(status, [&] { return out == std::vector<float>{2.5f, 0.5f, 1.5f}; });
}

__global__ void vector_kernel(const float4* in, float4* out) {
  float4 v = in[threadIdx.x];
  v.y += 1;
  out[31 - threadIdx.x] = v;
}
rf_status vectors() {
  std::vector<float> in(128, 2.0f), out(128);
  const rf_status status = run(vector_kernel, 1, 32, 0, input(in), output(out));
  return then(status, [&] { return out[0] == 2 && out[1] == 3; });
}

__global__ void dynamic_kernel(float* out) {
  extern __shared__ float buffer[];
  __shared__ float fixed[3];
  buffer[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 3) fixed[threadIdx.x] = 100;
  __syncthreads();
  out[threadIdx.x] = buffer[24 - threadIdx.x] + fixed[threadIdx.x % 3];
}
rf_status dynamic() {
  std::vector<float> out(25);
  const rf_status status = run(dynamic_kernel, 1, 25, 100, output(out));
  return then(status, [&] { return out[0] == 124 && out[24] == 100; });
}

// A block takes several items: with a capped grid, more of them.
__global__ void strided_kernel(int n, int* out) {
  __shared__ int item;
  for (int i = blockIdx.x; i < n; i += gridDim.x) {
    if (threadIdx.x == 0) item = i;
    __syncthreads();
    out[i * 32 + threadIdx.x] = item;
    __syncthreads();
  }
}
rf_status strided() {
  std::vector<int> out(320);
  const rf_status status = run(strided_kernel, 10, 32, 0, 10, output(out));
  return then(status, [&] { return out[0] == 0 && out[319] == 9; });
}

__global__ void global_atomic_kernel(int* out) { atomicAdd(out, static_cast<int>(threadIdx.x)); }
rf_status global_atomic() {
  std::vector<int> out(1);
  const rf_status status = run(global_atomic_kernel, 3, 4, 0, both(out));
  return then(status, [&] { return out[0] == 18; });
}

}  // namespace

std::vector<Selftest> right_kernels() {
  return {{"reverse", reverse},       {"histogram", histogram},
          {"same_value", same_value}, {"warp_sum", warp_sum},
          {"syncwarp", syncwarp},     {"diverge", diverge},
          {"block_vote", block_vote}, {"constant_table", constant_table},
          {"vectors", vectors},       {"dynamic", dynamic},
          {"strided", strided},       {"global_atomic", global_atomic}};
}

std::vector<std::string> selftest_names() {
  std::vector<std::string> names;
  for (const auto& list : {right_kernels(), wrong_kernels()})
    for (const Selftest& test : list) names.push_back(test.name);
  return names;
}

rf_status selftest(const std::string& name) {
  for (const auto& list : {right_kernels(), wrong_kernels()})
    for (const Selftest& test : list)
      if (name == test.name) return test.run();
  return fail(RF_INVALID_ARGUMENT, "no selftest is called %s", name.c_str());
}

}  // namespace rf::ptx
