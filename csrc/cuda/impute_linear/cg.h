// Conjugate gradients of one system, by one block; and the pixels that no known pixel determines.
#pragma once

#include "cuda/impute_linear/vcycle.h"

namespace rf {
namespace impute {

// live [h, w] holds 1 at removed pixels; those that no known pixel reaches through nonzero weights
// become 0. Repeats until nothing changes. Only weights that leave the image disconnected need
// this. scratch: [h, w].
template <typename Real>
__device__ void drop_unreachable(const DevicePlan<Real>& plan, uint8_t* live, Real* scratch) {
  constexpr uint8_t kReached = 2;
  const DeviceLevel<Real>& g = plan.level[0];
  for (int changed = 1; changed;) {
    changed = 0;
    for_cells(g.h, g.w, [&](int x, int y, int i) {
      const auto reaches = [&](int dx, int dy, Real weight) {
        const int u = x + dx, v = y + dy;
        return weight > 0 && u >= 0 && u < g.w && v >= 0 && v < g.h && live[v * g.w + u] != 1;
      };
      const DeviceWeights<Real>& s = g.weights;
      const bool reached =
          live[i] == 1 &&
          (reaches(-1, 0, s.edge_x) || reaches(1, 0, s.edge_x) || reaches(0, -1, s.edge_y) ||
           reaches(0, 1, s.edge_y) || reaches(-1, -1, s.diag_main) || reaches(1, 1, s.diag_main) ||
           reaches(1, -1, s.diag_anti) || reaches(-1, 1, s.diag_anti));
      scratch[i] = reached ? Real(1) : Real(0);
      changed |= reached;
    });
    changed = __syncthreads_or(changed);
    for_cells(g.h, g.w, [&](int, int, int i) {
      if (scratch[i] > 0) live[i] = kReached;
    });
    __syncthreads();
  }
  for_cells(g.h, g.w, [&](int, int, int i) { live[i] = live[i] == kReached; });
  __syncthreads();
}

// f.u: known values, 0 at live pixels -> the solution. As
// csrc/cpu/impute_linear/cg.h, pass by pass; y of level 0 lives in q,
// whose values are used up by then, and the residual to restrict in z.
template <typename Real>
__device__ CgResult<Real> solve(const DevicePlan<Real>& plan, const FineField<Real>& f,
                                const Field<Real>* fields, Real tolerance, int max_iterations,
                                Real* partial) {
  const DeviceLevel<Real>& g = plan.level[0];
  const int h = g.h, w = g.w;
  const DeviceWeights<Real> s = g.weights;
  const Real damping = 1 + plan.centre, kept = plan.centre / damping;
  const Real inner = 1 / (diagonal_at<Real>(1, 1, 3, 3, s) * damping);
  const auto inverse = [&](int x, int y) {
    const bool border = x == 0 || y == 0 || x == w - 1 || y == h - 1;
    return border ? 1 / (diagonal_at(x, y, h, w, s) * damping) : inner;
  };

  // T^4 1 by four sweeps over q and z; see kCoarseAboveT2.
  for_cells(h, w, [&](int, int, int i) { f.q[i] = f.live[i] ? Real(1) : Real(0); });
  __syncthreads();
  bool coarse = false, sparse = false, medium = true;
  for (int k = 1; k <= 4 && !coarse && !sparse; ++k) {
    Real *from = k % 2 ? f.q : f.z, *to = k % 2 ? f.z : f.q;
    Real top = 0;
    for_neighbour_sums<Real>(from, h, w, s, [&](int x, int y, int i, Real, Real sum) {
      const Real v = f.live[i] ? sum * inverse(x, y) * damping : Real(0);
      to[i] = v;
      top = top > v ? top : v;
    });
    top = block_reduce(top, Max(), partial);
    sparse = k == 1 && top < Real(kSparseT1);
    coarse = (k == 2 && top > Real(kCoarseAboveT2)) || (k == 4 && top > Real(kCoarseAboveT4));
    medium = top < Real(kMediumT4);
  }
  coarse = coarse && plan.levels > 1;
  const Real second = Real(coarse   ? 1.0
                           : sparse ? kSecondStepSparse
                           : medium ? kSecondStepMedium
                                    : kSecondStepDense);
  if (coarse) {
    for (int l = 1; l < plan.levels; ++l) set_up_level(plan, f.live, fields, l);
  }
  for_laplacians<Real>(f.u, h, w, s, [&](int, int, int i, Real, Real sum) {
    f.r[i] = f.live[i] ? sum : Real(0);
    f.p[i] = 0;
    f.q[i] = 0;
  });
  __syncthreads();

  SmallestEigenvalue<Real> smallest;
  CgResult<Real> result{0, 0, false};
  Real alpha = 0, beta = 0, rz = 0;
  for (int k = 0; k < max_iterations; ++k) {
    if (k > 0) {
      // u += alpha p, p = z + beta p, q = A p.
      for_cells(h, w, [&](int, int, int i) {
        const Real old = f.p[i];
        f.u[i] += alpha * old;
        f.p[i] = f.z[i] + beta * old;
      });
      __syncthreads();
      Real pq = 0;
      for_laplacians<Real>(f.p, h, w, s, [&](int, int, int i, Real own, Real sum) {
        const Real q = f.live[i] ? -sum : Real(0);
        f.q[i] = q;
        pq += own * q;
      });
      pq = block_reduce(pq, Sum(), partial);
      alpha = 0;
      if (!(pq > 0)) break;  // rounding has taken over; u already has the last step
      alpha = rz / pq;
      smallest.add_step(alpha, beta);
    }
    // r -= alpha q; y = r / D, into q.
    for_cells(h, w, [&](int x, int y, int i) {
      const Real r = f.r[i] - alpha * f.q[i];
      f.r[i] = r;
      f.q[i] = f.live[i] ? (inverse(x, y) * r) * second : Real(0);
    });
    __syncthreads();
    if (coarse) {
      for_neighbour_sums<Real>(f.q, h, w, s, [&](int x, int y, int i, Real own, Real sum) {
        f.z[i] = f.live[i] ? sum + (kept > 0 ? kept / inverse(x, y) * own : Real(0)) : Real(0);
      });
      __syncthreads();
      const DeviceLevel<Real>& below = plan.level[1];
      restrict_to(f.z, h, w, fields[1].r, below.h, below.w);
      solve_coarse(plan, fields);
      for_cells(h, w, [&](int x, int y, int i) {
        if (f.live[i]) f.q[i] += prolong_at(fields[1].y, below.h, below.w, x, y);
      });
      __syncthreads();
    }
    Real dot = 0, largest = 0;
    for_neighbour_sums<Real>(f.q, h, w, s, [&](int x, int y, int i, Real own, Real sum) {
      const Real r = f.r[i], z = f.live[i] ? inverse(x, y) * (r + sum) + kept * own : Real(0);
      f.z[i] = z;
      dot += r * z;
      largest = largest > fabs(z) ? largest : fabs(z);
    });
    dot = block_reduce(dot, Sum(), partial);
    largest = block_reduce(largest, Max(), partial);
    beta = rz > 0 ? dot / rz : Real(0);
    rz = dot;
    result.iterations = k + 1;
    result.last_correction = largest;
    result.converged = largest <= smallest.stop_factor() * tolerance;
    if (result.converged || k + 1 == max_iterations) {
      for_cells(h, w, [&](int, int, int i) { f.u[i] = f.u[i] + alpha * f.p[i] + f.z[i]; });
      break;
    }
  }
  __syncthreads();
  return result;
}

}  // namespace impute
}  // namespace rf
