// Systems of small images in float32: the conjugate gradients of cg.h with every pixel's u, r, p
// and q in the registers of one thread. Only what neighbours read is in shared memory: y and z,
// with a margin of zeros around the image. A block has all channels of an image (threadIdx.z), so
// that what depends on the mask alone is worked out once.
//
// An iteration has three barriers: y is there; z and the sums of r z are there; the sums of p q are
// there. A p is not applied but follows from A z: A p = A z + beta A p_old.
#pragma once

#include "cuda/impute_linear/pixels.h"
#include "cuda/impute_linear/resident_levels.h"

namespace rf {
namespace impute {

// Images of up to kSide x kSide. A thread has kCells pixels below each other; kAcross warps are
// side by side. Without kDamped only for the default weights, whose smoother has no centre weight:
// 128 registers suffice for eight pixels of them.
template <int kSideOf, int kCellsOf, bool kDampedOf>
struct ResidentShape {
  static constexpr int kSide = kSideOf, kCells = kCellsOf, kAcross = kSide / 32;
  static constexpr bool kDamped = kDampedOf;
  static constexpr int kPitch = kSide + 2, kField = kPitch * kPitch;  // with its margin
  static constexpr int kWarps = kAcross * (kSide / kCells), kThreads = 32 * kWarps;
};
using Resident32 = ResidentShape<32, 4, true>;
using Resident64 = ResidentShape<64, 8, false>;
constexpr int kResidentChannels = 1;  // of a block, at most: more would leave too few registers

// One channel's part of the block.
template <typename Shape>
struct ResidentThread {
  int column, row, first;  // the thread's first pixel, and its place in a field
  int h, w;
  float *y, *z;    // fields of the channel
  float* partial;  // [3][kWarps] of the channel

  // f(k, x, y, place in a field) for the thread's pixels, k a constant; those beyond the image too.
  template <typename F>
  __device__ __forceinline__ void for_own(const F& f) const {
#pragma unroll
    for (int k = 0; k < Shape::kCells; ++k) f(k, column, row + k, first + k * Shape::kPitch);
  }
  __device__ __forceinline__ bool inside(int x, int y) const { return x < w && y < h; }
};

// sum[k] = edge * (four edge neighbours) + diagonal * (four diagonal ones) of a field.
template <typename Shape>
__device__ __forceinline__ void sums_of_neighbours(const ResidentThread<Shape>& t,
                                                   const float* field, float edge, float diagonal,
                                                   float* sum) {
  constexpr int kPitch = Shape::kPitch;
  const float* p = field + t.first;
  const auto sides = [&](int k) { return p[k * kPitch - 1] + p[k * kPitch + 1]; };
  float above = p[-kPitch], here = p[0], sides_above = sides(-1), sides_here = sides(0);
#pragma unroll
  for (int k = 0; k < Shape::kCells; ++k) {
    const float below = p[(k + 1) * kPitch], sides_below = sides(k + 1);
    sum[k] = __fmaf_rn(edge, sides_here + (above + below), diagonal * (sides_above + sides_below));
    above = here, here = below, sides_above = sides_here, sides_here = sides_below;
  }
}

// sum[k] = weight * (neighbour - own) over the neighbours inside the image, from differences so
// that float32 does not lose them. With d the sum of a row's two differences and v that of the two
// vertical ones: edge (d + v) + diagonal (d above + d below + v per horizontal neighbour).
template <typename Shape>
__device__ __forceinline__ void laplacians(const ResidentThread<Shape>& t, const float* field,
                                           const float* own, float edge, float diagonal,
                                           float* sum) {
  constexpr int kPitch = Shape::kPitch, kCells = Shape::kCells;
  const float* p = field + t.first;
  const bool left = t.column > 0, right = t.column + 1 < t.w, top = t.row > 0;
  const float vertical =
      __fmaf_rn(diagonal, static_cast<float>(left) + static_cast<float>(right), edge);
  const auto differences = [&](int k, float middle) {
    const float l = p[k * kPitch - 1], r = p[k * kPitch + 1];
    return ((left ? l : middle) - middle) + ((right ? r : middle) - middle);
  };
  float above = p[-kPitch];
  float d_above = top ? differences(-1, above) : 0.0f, d_here = differences(0, own[0]);
  above = top ? above : own[0];
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    const float here = own[k];
    const bool bottom = t.row + k + 1 < t.h;
    float below = k + 1 < kCells ? own[k + 1] : p[kCells * kPitch];
    const float d_below = bottom ? differences(k + 1, below) : 0.0f;
    below = bottom ? below : here;
    const float v = (above - here) + (below - here);
    sum[k] = __fmaf_rn(edge, d_here, __fmaf_rn(vertical, v, diagonal * (d_above + d_below)));
    above = here, d_above = d_here, d_here = d_below;
  }
}

// A warp's result goes to the channel's partial results...
template <typename Shape, typename Op>
__device__ __forceinline__ void reduce_warp(float v, const Op& op, float* partial) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    v = op(v, __shfl_down_sync(0xffffffffu, v, offset));
  if (threadIdx.x == 0) partial[threadIdx.y] = v;
}
// ... and after a barrier every thread gets the whole, always added up in one order.
template <typename Shape, typename Op>
__device__ __forceinline__ float reduce_partial(const Op& op, const float* partial) {
  float v = partial[0];
#pragma unroll
  for (int k = 1; k < Shape::kWarps; ++k) v = op(v, partial[k]);
  return v;
}

// Which preconditioner suits the mask: see kCoarseAboveT2. The first channel's threads sweep over
// its fields.
struct Preconditioner {
  bool coarse;
  float second;
};
template <typename Shape>
__device__ __forceinline__ Preconditioner choose(const ResidentThread<Shape>& t,
                                                 const ResidentPlan& plan, const float* inv,
                                                 float* partial0) {
  const bool works = threadIdx.z == 0;
  const float damping = Shape::kDamped ? 1 + plan.centre : 1.0f;
  if (works) t.for_own([&](int k, int, int, int i) { t.y[i] = inv[k] > 0 ? 1.0f : 0.0f; });
  __syncthreads();
  bool coarse = false, sparse = false, medium = true;
  for (int k = 1; k <= 4 && !coarse && !sparse; ++k) {
    float* partial = partial0 + (k & 1) * Shape::kWarps;
    if (works) {
      float sum[Shape::kCells];
      sums_of_neighbours(t, k % 2 ? t.y : t.z, plan.edge, plan.diagonal, sum);
      float* to = k % 2 ? t.z : t.y;
      float top = 0;
      t.for_own([&](int j, int, int, int i) {
        const float v = sum[j] * inv[j] * damping;
        to[i] = v;
        top = top > v ? top : v;
      });
      reduce_warp<Shape>(top, Max(), partial);
    }
    __syncthreads();
    const float top = reduce_partial<Shape>(Max(), partial);
    sparse = k == 1 && top < static_cast<float>(kSparseT1);
    coarse = (k == 2 && top > static_cast<float>(kCoarseAboveT2)) ||
             (k == 4 && top > static_cast<float>(kCoarseAboveT4));
    medium = top < static_cast<float>(kMediumT4);
  }
  coarse = coarse && plan.levels > 1;
  return {coarse, static_cast<float>(coarse   ? 1.0
                                     : sparse ? kSecondStepSparse
                                     : medium ? kSecondStepMedium
                                              : kSecondStepDense)};
}

// The coarse levels' inverse diagonals, by the first channel's threads with its fields.
template <typename Shape>
__device__ __forceinline__ void set_up_levels(const ResidentThread<Shape>& t,
                                              const ResidentPlan& plan, const ResidentFields& f,
                                              const float* inv) {
  const bool works = threadIdx.z == 0;
  const int rank = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  const Team<true> block{rank, Shape::kThreads, !works};
  const Team<false> warp{rank, 32, false};
  const bool first_warp = works && threadIdx.y == 0;
  if (works) {
    t.for_own([&](int k, int x, int y, int i) {
      t.y[i] = t.inside(x, y) && !(inv[k] > 0) ? 1.0f : 0.0f;  // known
    });
  }
  __syncthreads();
  const auto pixel = [&](int x, int y, float* anchor) {
    const float* at = t.y + (y + 1) * Shape::kPitch + x + 1;
    const DeviceWeights<float> s = {plan.edge, plan.edge, plan.diagonal, plan.diagonal};
    *anchor = sum_of_neighbours(at, Shape::kPitch, s);
    return !(*at > 0);
  };
#pragma unroll 1
  for (int l = 1; l < plan.first_warp_level; ++l) {
    if (l == 1) {
      set_up(block, plan, f, l, pixel);
    } else {
      set_up_from_coarse(block, plan, f, l);
    }
  }
  if (first_warp) {
#pragma unroll 1
    for (int l = plan.first_warp_level; l < plan.levels; ++l) {
      if (l == 1) {
        set_up(warp, plan, f, l, pixel);
      } else {
        set_up_from_coarse(warp, plan, f, l);
      }
    }
  }  // the caller has a barrier before the levels are used
}

// What a channel's iteration knows besides its pixels: in shared memory, kept by the channel's
// first thread, since every register is a pixel's.
struct CgState {
  CgResult<float> result;
  float tolerance, largest_allowed;   // correction that ends the iteration
  float norm2, last, previous_alpha;  // SmallestEigenvalue, which shared memory cannot initialise

  __device__ __forceinline__ void start(float tolerance_of) {
    result = {0, 0, false};
    tolerance = tolerance_of;
    keep(SmallestEigenvalue<float>());
  }
  __device__ __forceinline__ void add_step(float alpha, float beta) {
    SmallestEigenvalue<float> smallest{norm2, last, previous_alpha};
    smallest.add_step(alpha, beta);
    keep(smallest);
  }
  __device__ __forceinline__ void keep(const SmallestEigenvalue<float>& smallest) {
    norm2 = smallest.norm2, last = smallest.last, previous_alpha = smallest.previous_alpha;
    largest_allowed = smallest.stop_factor() * tolerance;
  }
};

// u: values of the known pixels -> the solution at the others. inv: 1 / diagonal, 0 where nothing
// is to be solved. A channel that is done waits for the others at the barriers. state: started.
template <typename Shape>
__device__ __forceinline__ void solve_resident(const ResidentThread<Shape>& t,
                                               const ResidentPlan& plan, const ResidentFields& f,
                                               float* u, const float* inv, bool active,
                                               int max_iterations, float* partial0,
                                               CgState* state) {
  constexpr int kCells = Shape::kCells;
  const float kept = Shape::kDamped ? plan.centre / (1 + plan.centre) : 0.0f;
  const Preconditioner how = choose(t, plan, inv, partial0);
  if (how.coarse) set_up_levels(t, plan, f, inv);

  float r[kCells], p[kCells], q[kCells];
  t.for_own([&](int k, int, int, int i) { t.z[i] = u[k]; });
  __syncthreads();
  laplacians(t, t.z, u, plan.edge, plan.diagonal, r);
  t.for_own([&](int k, int, int, int) {
    r[k] = inv[k] > 0 ? r[k] : 0.0f;
    p[k] = q[k] = 0;
  });

  const int rank = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  float rz = 0;
  float* partial_pq = t.partial;
  float* partial_rz = t.partial + Shape::kWarps;
  float* partial_max = t.partial + 2 * Shape::kWarps;
  for (int k = 0; k < max_iterations; ++k) {
    if (active) {
      t.for_own([&](int j, int, int, int i) { t.y[i] = inv[j] * r[j] * how.second; });
    }
    if (!__syncthreads_or(active)) break;
    if (how.coarse) {
      if (active) {
        float sum[kCells];
        sums_of_neighbours(t, t.y, plan.edge, plan.diagonal, sum);
        t.for_own([&](int j, int, int, int i) {
          const float more = kept > 0 && inv[j] > 0 ? kept / inv[j] * t.y[i] : 0.0f;
          t.z[i] = inv[j] > 0 ? sum[j] + more : 0.0f;
        });
      }
      __syncthreads();
      const Team<true> block{rank, Shape::kThreads, !active};
      const Team<false> warp{rank, 32, !active || threadIdx.y != 0};
      const float* pixels = t.z + Shape::kPitch + 1;
      solve_levels(block, warp, plan, f, [&](int cx, int cy) {
        return restricted(pixels, Shape::kPitch, cx, cy, plan.level[1]);
      });
      if (active) {
        t.for_own([&](int j, int x, int row, int i) {
          if (inv[j] > 0) t.y[i] += prolonged(f.y, plan.level[1], x, row);
        });
      }
      __syncthreads();
    }
    float z[kCells];
    if (active) {
      sums_of_neighbours(t, t.y, plan.edge, plan.diagonal, z);
      float dot = 0, largest = 0;
      t.for_own([&](int j, int, int, int i) {
        z[j] = inv[j] * (r[j] + z[j]);
        if (kept > 0) z[j] = __fmaf_rn(kept, t.y[i], z[j]);
        t.z[i] = z[j];
        dot = __fmaf_rn(r[j], z[j], dot);
        largest = fmaxf(largest, fabsf(z[j]));
      });
      reduce_warp<Shape>(dot, Sum(), partial_rz);
      reduce_warp<Shape>(largest, Max(), partial_max);
    }
    __syncthreads();
    float beta = 0;
    if (active) {
      const float dot = reduce_partial<Shape>(Sum(), partial_rz);
      const float largest = reduce_partial<Shape>(Max(), partial_max);
      beta = rz > 0 ? dot / rz : 0.0f;
      rz = dot;
      const bool converged = largest <= state->largest_allowed;
      if (rank == 0) state->result = {k + 1, largest, converged};
      if (converged || k + 1 == max_iterations) {
        t.for_own([&](int j, int, int, int) { u[j] += z[j]; });
        active = false;
      }
    }
    if (active) {
      float sum[kCells];
      laplacians(t, t.z, z, plan.edge, plan.diagonal, sum);
      float pq = 0;
      t.for_own([&](int j, int, int, int) {
        p[j] = __fmaf_rn(beta, p[j], z[j]);
        q[j] = __fmaf_rn(beta, q[j], inv[j] > 0 ? -sum[j] : 0.0f);
        pq = __fmaf_rn(p[j], q[j], pq);
      });
      reduce_warp<Shape>(pq, Sum(), partial_pq);
    }
    __syncthreads();
    if (active) {
      const float pq = reduce_partial<Shape>(Sum(), partial_pq);
      active = pq > 0;  // else rounding has taken over
      if (active) {
        const float alpha = rz / pq;
        if (rank == 0) state->add_step(alpha, beta);
        t.for_own([&](int j, int, int, int) {
          u[j] = __fmaf_rn(alpha, p[j], u[j]);
          r[j] = __fmaf_rn(-alpha, q[j], r[j]);
        });
      }
    }
  }
}

}  // namespace impute
}  // namespace rf
