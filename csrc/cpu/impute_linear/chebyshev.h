// Where known pixels are everywhere (random masks up to about 60 %), no coarse levels are needed:
// Chebyshev-accelerated Jacobi sweeps on the whole image,
//
//   x' = x_before + omega (T x + b - x_before)   at unknown pixels,
//
// T being the Jacobi matrix over the unknown pixels and b what the known ones give: known values
// stay in place in x, so a sweep is one stencil. There are no inner products, so that many sweeps
// run over a band of rows at once, and the error is bounded instead of estimated: T >= 0, hence
// |(1 - T)^-1 d| <= max |d| (1 + t_1 + .. + t_(m-1)) / (1 - t_m) with t_k = max T^k 1.
#pragma once

#include <cmath>

#include "cpu/impute_linear/cg.h"
#include "cpu/impute_linear/sweeps.h"

namespace rf {
namespace impute {

// What T^k 1 says about one mask.
struct SweepPlan {
  bool use = false;   // sweeps alone suffice
  double radius = 0;  // of the spectrum of T, about
  double bound = 1;   // max norm of (1 - T)^-1
};

// T^k 1 for k <= 8 by eight sweeps over fine.r and fine.p; fine.z holds the unknown flags. Fewer
// sweeps if it is clear that coarse levels are needed. A system's plan depends on itself only.
template <typename Layout, bool kCustom>
void plan_sweeps(const Grid<Layout>& grid, double tol, SweepPlan plans[Layout::kSystems]) {
  using Real = typename Layout::Real;
  using Vec = V<Real>;
  const Fine<Layout>& f = grid.fine;
  constexpr int kPowers = 8;
  Vec top[kPowers] = {};
  Real* fields[2] = {f.r, f.p};
  // Row j of T^(k + 1) 1; returns the largest entry.
  const auto power_row = [&](int k, int64_t j) {
    Real* out = fields[k % 2] + j * f.stride;
    Vec largest{};
    if (!f.row_any(j)) {
      if (k < 2) memset(out, 0, static_cast<size_t>(f.n) * sizeof(Real));
      return largest;
    }
    const int8_t* unknown = f.unknown_row(j);
    mean_row<Layout, kCustom>(f, k == 0 ? f.z : fields[(k + 1) % 2], j, [&](int64_t i, Vec mean) {
      const Vec v = keep<Real>(load_mask<Real>(unknown + i), mean);
      store<Real>(out + i, v);
      largest = max_of(largest, v);
    });
    return largest;
  };
  const auto powers = [&](int first, int count) {
    const int64_t row_bytes = f.stride * static_cast<int64_t>(sizeof(Real));
    if (grid.team.threads == 1) {
      for_sweeps(count, f.h, row_bytes, [&](int k, int64_t j) {
        top[first + k] = max_of(top[first + k], power_row(first + k, j));
      });
    } else {
      for (int k = first; k < first + count; ++k) {
        grid.team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
          for (int64_t j = begin; j < end; ++j) store<Real>(f.row_total(j), power_row(k, j));
        });
        for (int64_t j = 0; j < f.h; ++j) top[k] = max_of(top[k], load(f.row_total(j)));
      }
    }
    for (int k = first; k < first + count; ++k) top[k] = Layout::max(top[k]);
  };
  const auto any_below = [&](Vec v, double limit) {
    bool any = false;
    for (int lane = 0; lane < Layout::kSystems; ++lane) any |= v[lane] <= limit;
    return any;
  };
  powers(0, 2);
  if (any_below(top[1], kCoarseAboveSecond)) {
    powers(2, 2);
    if (any_below(top[3], kCoarseAboveFourth)) powers(4, 4);
  }
  for (int lane = 0; lane < Layout::kSystems; ++lane) {
    SweepPlan plan;
    double t[kPowers];
    for (int k = 0; k < kPowers; ++k) t[k] = top[k][lane];
    if (t[1] <= kCoarseAboveSecond && t[3] <= kCoarseAboveFourth) {
      double sum = 1;
      for (int k = 0; k < kPowers - 1; ++k) sum += t[k];
      plan.bound = sum / (1 - t[7]);
      plan.radius = t[3] > 0 ? std::sqrt(std::sqrt(t[7] / t[3])) : 0;
      // Rounding moves a pixel by about the precision, and its hole by `bound` times that.
      plan.use = plan.radius <= kSweepsMaxRadius &&
                 plan.bound * 3 * std::numeric_limits<Real>::epsilon() <= tol;
    }
    plans[lane] = plan;
  }
}

// Solves the systems that are planned for sweeps; others stay as they are. sweep(omega, total) does
// `total` sweeps and returns max |T x + b - x| of the last but one result. Three sweeps count as
// one iteration, as a multigrid cycle passes over the image three times.
template <typename Layout, typename Sweep>
void run_sweeps(const SweepPlan* plans, double relative_tol, V<typename Layout::Real> tolerance,
                int max_iterations, Outcome<Layout>* out, const Sweep& sweep) {
  using Real = typename Layout::Real;
  constexpr int kVec = Layout::kVec;
  const int64_t limit = 3 * int64_t{max_iterations} / 2 * 2;
  int sweeps[kVec] = {}, count[kVec] = {};
  double radius2[kVec] = {}, factor[kVec] = {};  // factor: the last omega
  for (int lane = 0; lane < kVec; ++lane) {
    const SweepPlan& plan = plans[lane % Layout::kSystems];
    if (!plan.use) continue;
    const double radius = std::max(plan.radius, 0.1);
    radius2[lane] = radius * radius;
    const double rate = radius / (1 + std::sqrt(1 - radius2[lane]));
    const int half =
        static_cast<int>(std::log(kStartError / relative_tol) / (-2 * std::log(rate))) + 1;
    count[lane] = std::min<int64_t>({2 * half, kMaxSweeps, limit});
  }
  for (;;) {
    const int total = *std::max_element(count, count + kVec);
    if (total == 0) return;
    // Systems with fewer sweeps wait at the start, so that all end together.
    V<Real> omega[kMaxSweeps];
    for (int lane = 0; lane < kVec; ++lane) {
      for (int k = 0; k < total; ++k) {
        const int step = sweeps[lane] + k - (total - count[lane]);
        double& w = factor[lane];
        const bool waits = k < total - count[lane];
        if (!waits) w = step == 0 ? 1 : 1 / (1 - radius2[lane] * w / (step == 1 ? 2 : 4));
        omega[k][lane] = waits ? Real(0) : static_cast<Real>(w);
      }
    }
    const V<Real> change = sweep(omega, total);
    for (int lane = 0; lane < kVec; ++lane) {
      if (count[lane] == 0) continue;
      const Real error = change[lane] * static_cast<Real>(plans[lane % Layout::kSystems].bound);
      sweeps[lane] += count[lane];
      out->last_correction[lane] = error;
      out->iterations[lane] = (sweeps[lane] + 2) / 3;
      out->converged[lane] = error <= tolerance[lane] ? -1 : 0;
      const int left = std::min<int64_t>(kMoreSweeps, limit - sweeps[lane]);
      count[lane] = out->converged[lane] ? 0 : left;
    }
  }
}

// An even number of sweeps over whole images, in u and z, which both hold known values and 0 at
// unknown pixels to begin with. Returns max |T x + b - x| of the last but one result.
template <typename Layout, bool kCustom>
V<typename Layout::Real> sweep_images(const Fine<Layout>& f, const V<typename Layout::Real>* omega,
                                      int total) {
  using Real = typename Layout::Real;
  using Vec = V<Real>;
  Vec change{};
  for_sweeps(total, f.h, f.stride * static_cast<int64_t>(sizeof(Real)), [&](int k, int64_t j) {
    if (!f.row_any(j)) return;
    const Real* from = k % 2 ? f.z : f.u;
    Real* row = f.row(k % 2 ? f.u : f.z, j);
    const int8_t* unknown = f.unknown_row(j);
    const Vec w = omega[k], rest = splat<Real>(Real(1)) - w;
    const auto advance = [&](int64_t i, Vec mean) {
      const Vec before = load(row + i);
      store<Real>(row + i,
                  select<Real>(load_mask<Real>(unknown + i), w * mean + rest * before, before));
    };
    if (k + 1 < total) {
      mean_row<Layout, kCustom>(f, from, j, advance);
    } else {
      const Real* mid = from + j * f.stride;
      mean_row<Layout, kCustom>(f, from, j, [&](int64_t i, Vec mean) {
        const Vec step = abs_of(mean - load(mid + i));
        change = max_of(change, keep<Real>(load_mask<Real>(unknown + i), step));
        advance(i, mean);
      });
    }
  });
  return Layout::max(change);
}

}  // namespace impute
}  // namespace rf
