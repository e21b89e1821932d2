// One feature each: collectives, barriers with votes, types, intrinsics. All must succeed.
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/dtype.h"
#include "cuda/support/launch.h"
#include "selftest_list.h"

namespace rf::simt {

namespace {

// Runs `kernel` in one block of `threads`; true everywhere in ok[] is success.
rf_status all_true(void (*kernel)(int*), int threads, const char* what) {
  std::vector<int> ok(threads, 0);
  return then(launch(kernel, 1, threads, 0, nullptr, ok.data()), what,
              [&] { return ok == std::vector<int>(threads, 1); });
}

// ==== shuffles: every kind, segments, 64-bit values
__global__ void shuffle_kernel(int* ok) {
  const int lane = threadIdx.x % 32;
  const long long wide = (static_cast<long long>(lane) << 40) + 7;
  bool right = __shfl_sync(kFull, lane, 5) == 5;
  right &= __shfl_sync(kFull, lane, 5, 8) == (lane & ~7) + 5;
  right &= __shfl_up_sync(kFull, lane, 3) == (lane < 3 ? lane : lane - 3);
  right &= __shfl_down_sync(kFull, lane, 3, 16) == (lane % 16 > 12 ? lane : lane + 3);
  right &=
      __shfl_xor_sync(kFull, static_cast<unsigned>(lane), 9) == static_cast<unsigned>(lane ^ 9);
  right &= __shfl_xor_sync(kFull, lane * 0.5, 1) == (lane ^ 1) * 0.5;
  right &= __shfl_sync(kFull, wide, 31 - lane) == (static_cast<long long>(31 - lane) << 40) + 7;
  right &= __shfl_sync(kFull, lane * 0.25f, lane + 32) == lane * 0.25f;  // the lane number wraps
  ok[threadIdx.x] = right;
}
rf_status shuffle_kinds() { return all_true(shuffle_kernel, 96, "shuffles"); }

// ==== votes and integer reductions
__global__ void vote_kernel(int* ok) {
  const int lane = threadIdx.x % 32;
  bool right = __ballot_sync(kFull, lane % 3 == 0) == 0x49249249u;
  right &= __any_sync(kFull, lane == 17) && !__any_sync(kFull, lane == 32);
  right &= __all_sync(kFull, lane < 32) && !__all_sync(kFull, lane != 17);
  right &= __reduce_add_sync(kFull, lane) == 496 && __reduce_add_sync(kFull, 1u) == 32u;
  right &= __reduce_min_sync(kFull, lane - 16) == -16 && __reduce_max_sync(kFull, lane - 16) == 15;
  right &= __reduce_min_sync(kFull, static_cast<unsigned>(lane - 16)) == 0u;
  right &= __reduce_max_sync(kFull, static_cast<unsigned>(lane - 16)) == 0xffffffffu;
  right &=
      __reduce_and_sync(kFull, ~(1u << lane)) == 0u && __reduce_or_sync(kFull, 1u << lane) == kFull;
  right &= __reduce_xor_sync(kFull, static_cast<unsigned>(lane < 3)) == 1u;
  right &= __activemask() == 1u << lane;
  ok[threadIdx.x] = right;
}
rf_status votes() { return all_true(vote_kernel, 64, "votes"); }

// ==== two halves of a warp apart, and a last warp of 8 lanes
__global__ void partial_mask_kernel(int* ok) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x >= 32) {
    ok[threadIdx.x] = __reduce_add_sync(kFull, 1) == 8 && __all_sync(kFull, 1);
  } else if (lane < 16) {
    ok[threadIdx.x] = __reduce_add_sync(0x0000ffffu, lane) == 120;
  } else {
    int sum = lane;
    for (int delta = 8; delta > 0; delta /= 2) sum += __shfl_xor_sync(0xffff0000u, sum, delta);
    ok[threadIdx.x] = sum == 376;
  }
}
rf_status partial_masks() { return all_true(partial_mask_kernel, 40, "partial masks"); }

// ==== barriers that count
__global__ void barrier_vote_kernel(int* ok) {
  const int t = threadIdx.x;
  bool right = __syncthreads_count(t % 2) == 35;
  right &= __syncthreads_or(t == 69) && !__syncthreads_or(0);
  right &= __syncthreads_and(1) && !__syncthreads_and(t != 3);
  ok[t] = right;
}
rf_status barrier_votes() { return all_true(barrier_vote_kernel, 70, "barrier votes"); }

// ==== what is ordered without a block barrier: lanes by __syncwarp; and equal stores do not race
__global__ void syncwarp_kernel(int* ok) {
  RF_SHARED(int, values, [2][32]);
  RF_SHARED(bool, seen, );
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int round = 0; round < 3; ++round) {
    values[warp][lane] = lane + round;
    __syncwarp();
    const int neighbour = values[warp][(lane + 1) % 32];
    __syncwarp();
    ok[threadIdx.x] = neighbour == (lane + 1) % 32 + round;
  }
  if (ok[threadIdx.x]) seen = true;
  __syncthreads();
  ok[threadIdx.x] &= seen;
}
rf_status syncwarp_order() { return all_true(syncwarp_kernel, 64, "order by __syncwarp"); }

// ==== types: vectors, half, an over-aligned and a struct array
struct Pair {
  float value;
  int index;
};

__global__ void types_kernel(const uint4* in, int* ok) {
  RF_SHARED(__align__(16) float, row, [64]);
  RF_SHARED(Pair, pairs, [16]);
  RF_SHARED(half_t, halves, [16]);
  RF_SHARED(unsigned char, bytes, [64]);
  const int t = threadIdx.x;
  *reinterpret_cast<float4*>(&row[4 * t]) = make_float4(t, t + 1, t + 2, t + 3);
  pairs[t] = {t * 2.0f, t};
  halves[t] = rf::store<half_t>(t * 0.5f);
  const uint4 v = __ldg(&in[t]);
  memcpy(&bytes[4 * t], &v.w, 4);
  __syncthreads();
  const int u = 15 - t;
  bool right = sizeof(row) == 64 * sizeof(float) && row[4 * u + 3] == u + 3;
  right &= pairs[u].value == u * 2.0f && pairs[u].index == u && rf::load(halves[u]) == u * 0.5f;
  right &= bytes[4 * u + 1] == 2 && v.x == static_cast<unsigned>(t) && v.y == 1;
  ok[t] = right;
}
rf_status types() {
  std::vector<uint4> in;
  for (unsigned i = 0; i < 16; ++i) in.push_back(make_uint4(i, 1, 2, 0x00000201));
  std::vector<int> ok(16);
  return then(launch(types_kernel, 1, 16, 0, nullptr, in.data(), ok.data()), "types",
              [&] { return ok == std::vector<int>(16, 1); });
}

// ==== intrinsics and atomics
__global__ void intrinsics_kernel(int* ok) {
  bool right = __popc(0xf0f0u) == 8 && __popcll(~0ull) == 64 && __clz(1) == 31 && __clzll(0) == 64;
  right &=
      __ffs(8) == 4 && __ffs(0) == 0 && __brev(1u) == 0x80000000u && __umulhi(1u << 31, 4) == 2u;
  right &= __byte_perm(0x33221100u, 0x77665544u, 0x5410u) == 0x55441100u;
  right &= __byte_perm(0x80u, 0, 0x8888u) == 0xffffffffu;
  right &= __funnelshift_l(0x80000000u, 1u, 1) == 3u && __funnelshift_r(2u, 1u, 1) == 0x80000001u;
  right &= __float_as_uint(1.0f) == 0x3f800000u && __int_as_float(0x40000000) == 2.0f;
  right &= __longlong_as_double(__double_as_longlong(0.1)) == 0.1 && __saturatef(1.5f) == 1.0f;
  right &= min(3, 4u) == 3u && max(-1, 2) == 2 && max(1.0f, NAN) == 1.0f && min(2.0, 1) == 1.0;
  right &= rsqrtf(4.0f) == 0.5f && __float2int_rn(2.5f) == 2 && fmaxf(1.0f, 2.0f) == 2.0f;
  ok[threadIdx.x] = right;
}
rf_status intrinsics() { return all_true(intrinsics_kernel, 1, "intrinsics"); }

__global__ void atomics_kernel(float* f, double* d, unsigned long long* u, int* i, unsigned* x) {
  const int t = threadIdx.x;
  atomicAdd(f, 0.5f);
  atomicAdd(d, 1);
  atomicAdd(u, 1ull << 40);
  atomicMin(&i[0], -t);
  atomicMax(&i[1], t);
  atomicOr(&x[0], 1u << t % 32);
  atomicAnd(&x[1], ~(1u << t % 32));
  atomicXor(&x[2], 1u);
  for (unsigned old = x[3], seen;; old = seen) {  // add by compare-and-swap
    seen = atomicCAS(&x[3], old, old + 2);
    if (seen == old) break;
  }
  if (atomicExch(&x[4], 1u) == 0u) atomicAdd(&x[5], 1u);
}
rf_status atomics() {
  float f = 0;
  double d = 0;
  unsigned long long u = 0;
  int i[2] = {0, 0};
  unsigned x[6] = {0, kFull, 0, 0, 0, 0};
  return then(launch(atomics_kernel, 1, 100, 0, nullptr, &f, &d, &u, &i[0], &x[0]), "atomics", [&] {
    return f == 50.0f && d == 100.0 && u == 100ull << 40 && i[0] == -99 && i[1] == 99 &&
           x[0] == kFull && x[1] == 0 && x[2] == 0 && x[3] == 200 && x[5] == 1;
  });
}

const Selftest kTests[] = {
    {"shuffle_kinds", shuffle_kinds},   {"votes", votes},
    {"partial_masks", partial_masks},   {"barrier_votes", barrier_votes},
    {"syncwarp_order", syncwarp_order}, {"types", types},
    {"intrinsics", intrinsics},         {"atomics", atomics},
};

}  // namespace

SelftestList features() { return {kTests, sizeof(kTests) / sizeof(kTests[0])}; }

}  // namespace rf::simt
