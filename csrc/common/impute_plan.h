// What CPU and CUDA share about the linear imputation: the hierarchy of grids, the neighbour
// weights, and the constants of the preconditioner. Method: docs/imputation.md.
//
// Weights are scaled so that an inner pixel's eight sum to 12; the default ones then are 2 (edge)
// and 1 (diagonal). A level's equations are  (W + E) e = r  with W the graph Laplacian
// of the constant stencil over the unknown cells and E a field that stands for what
// the known pixels hold in place.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/dtype.h"
#include "common/status.h"

namespace rf {
namespace impute {

constexpr int kMaxLevels = 32;  // sides up to 2^31
// Anchoring of coarse cells, tuned over masks of all kinds: see docs/imputation.md.
constexpr double kAnchorSaturation = 18.0;
constexpr double kAnchorKnown = 4.0;
// CUDA only; the CPU has cpu/impute_linear/chebyshev.h for this.
// Where known pixels are everywhere (random masks up to about 60 %), smoothing alone preconditions
// well enough: a cycle without coarse levels costs half as much and about 1.4 times as many are
// needed. T being the Jacobi matrix over the unknown pixels, coarse levels are used if the largest
// entry of T^2 1 or of T^4 1 exceeds these.
constexpr double kCoarseAboveT2 = 0.96, kCoarseAboveT4 = 0.69;
// The preconditioner then is (1 + a T) / D. a = 1 is two Jacobi steps and best if T 1 < kSparseT1
// everywhere; larger a narrows the spectrum of (1 - T)(1 + a T) when T reaches further. 1.6 stays
// positive down to T = -0.625, below what any image at least 2 wide can have.
constexpr double kSparseT1 = 0.9, kMediumT4 = 0.35;
constexpr double kSecondStepSparse = 1.0, kSecondStepMedium = 1.3, kSecondStepDense = 1.6;
// Solving in float32 keeps the promised error down
// to this tolerance; below it the solver works in double.
constexpr double kFloatTolerance = 5e-6;

// Point-symmetric neighbour weights: edge_x left and right, edge_y above and below, diag_main on
// the upper-left to lower-right diagonal, diag_anti on the other.
struct Weights {
  double edge_x = 2, edge_y = 2, diag_main = 1, diag_anti = 1;
};

struct GridSize {
  int64_t h, w;
};

struct Plan {
  int levels;
  GridSize size[kMaxLevels];
  // Weights of each level. Halving both sides keeps them; once one side is 1 the other shrinks
  // alone, and the conductance along it halves each time.
  Weights weights[kMaxLevels];
  // For the constant stencil instead: the factor between
  // the equations of a level and the next coarser one.
  double restrict_scale[kMaxLevels];
  double saturation[kMaxLevels];  // kAnchorSaturation in the units of the level's weights
  bool custom;                    // not the default weights
  double centre;   // 1 / omega - 1 of the damped Jacobi smoother; 0 for the default weights
  bool connected;  // every pixel can reach every other one
  bool in_double;  // directions decouple: float32 would lose too many digits
  double tolerance_factor;  // below 1 where corrections say less about the error
};

inline bool is_default(const Weights& w) {
  return w.edge_x == w.edge_y && w.diag_main == w.diag_anti && w.edge_x == 2 * w.diag_main &&
         w.diag_main > 0;
}

// Damping of the Jacobi smoother from the symbol s of D^-1 O on frequencies
// that a coarse grid cannot see: omega = 2 / (2 - s_min - s_max), kept
// below 1.8 / (1 - s_min) where directions decouple. Default: 1. A line
// of pixels (one edge weight only is left) has no frequencies across it.
inline double jacobi_damping(const Weights& w, bool line) {
  if (line) return 2.0 / 3;
  constexpr int kSamples = 32;
  constexpr double kPi = 3.14159265358979323846;
  const double sum = w.edge_x + w.edge_y + w.diag_main + w.diag_anti;
  double lowest = 1, highest = -1;
  for (int i = 0; i <= kSamples; ++i) {
    for (int j = -kSamples; j <= kSamples; ++j) {
      if (2 * i < kSamples && 2 * (j < 0 ? -j : j) < kSamples) continue;
      const double x = kPi * i / kSamples, y = kPi * j / kSamples;
      const double s = (w.edge_x * std::cos(x) + w.edge_y * std::cos(y) +
                        w.diag_main * std::cos(x + y) + w.diag_anti * std::cos(x - y)) /
                       sum;
      lowest = s < lowest ? s : lowest;
      highest = s > highest ? s : highest;
    }
  }
  const double best = 2 / (2 - lowest - highest), safe = 1.8 / (1 - lowest);
  return best < safe ? best : safe;
}

// weights: the upper-left half of the 3x3 neighbourhood, (diag_main, edge_y, diag_anti, edge_x).
inline Plan make_plan(int64_t h, int64_t w, const double weights[4]) {
  Plan plan{};
  const double sum = 2 * (weights[0] + weights[1] + weights[2] + weights[3]);
  const double unit = 12 / sum;
  Weights base;
  base.diag_main = weights[0] * unit;
  base.edge_y = weights[1] * unit;
  base.diag_anti = weights[2] * unit;
  base.edge_x = weights[3] * unit;
  Weights raw{weights[3], weights[1], weights[0], weights[2]};
  const bool line = h == 1 || w == 1;
  plan.custom = !is_default(raw) || line;
  if (!plan.custom) base = Weights{};
  if (line)
    base = h == 1 ? Weights{weights[3] > 0 ? 6.0 : 0.0, 0, 0, 0}
                  : Weights{0, weights[1] > 0 ? 6.0 : 0.0, 0, 0};
  plan.centre = plan.custom ? 1 / jacobi_damping(base, line) - 1 : 0;
  plan.in_double =
      line || base.edge_x != base.edge_y || base.diag_main != base.diag_anti || base.edge_x == 0;
  plan.tolerance_factor = plan.in_double ? 0.1 : 1;
  const bool x = base.edge_x > 0, y = base.edge_y > 0,
             diagonal = base.diag_main > 0 || base.diag_anti > 0;
  plan.connected = w == 1 ? (h == 1 || y) : h == 1 ? x : (x && y) || ((x || y) && diagonal);

  plan.saturation[0] = kAnchorSaturation;
  plan.size[0] = {h, w};
  plan.weights[0] = base;
  int l = 0;
  while (plan.size[l].h > 1 || plan.size[l].w > 1) {
    const GridSize s = plan.size[l];
    const Weights& f = plan.weights[l];
    const GridSize c = {(s.h + 1) / 2, (s.w + 1) / 2};
    Weights g = f;
    double scale = 1;
    if (c.h == 1 && s.w > 1) {  // what is left is a line of columns: add up what runs along it
      g = Weights{0, 0, 0, 0};
      g.edge_x = 0.5 * (s.h * f.edge_x + (s.h - 1) * (f.diag_main + f.diag_anti));
      const double before = s.h == 1 ? f.edge_x : base.edge_x;
      scale = g.edge_x > 0 ? before / g.edge_x : 1;
    } else if (c.w == 1 && s.h > 1) {
      g = Weights{0, 0, 0, 0};
      g.edge_y = 0.5 * (s.w * f.edge_y + (s.w - 1) * (f.diag_main + f.diag_anti));
      const double before = s.w == 1 ? f.edge_y : base.edge_y;
      scale = g.edge_y > 0 ? before / g.edge_y : 1;
    }
    const double size = (g.edge_x + g.edge_y + g.diag_main + g.diag_anti) / 6;
    plan.saturation[l + 1] = kAnchorSaturation * (size > 0 ? size : 1);
    plan.restrict_scale[l] = plan.custom ? 1 : scale;
    ++l;
    plan.size[l] = c;
    plan.weights[l] = g;
  }
  plan.levels = l + 1;
  return plan;
}

inline bool needs_double(const Plan& plan, double tol) {
  return plan.in_double || tol < kFloatTolerance;
}

// Smallest eigenvalue of the preconditioned matrix, from the steps
// of the conjugate gradients: the smallest singular value of their
// bidiagonal Lanczos factor, followed by incremental condition estimation.
template <typename Real>
struct SmallestEigenvalue {
  Real norm2 = 0;  // estimate of 1 / eigenvalue
  Real last = 0;   // last component of the vector that attains it
  Real previous_alpha = 0;

  RF_HD void add_step(Real alpha, Real beta) {
    if (!(alpha > 0)) return;
    if (!(previous_alpha > 0)) {
      norm2 = alpha;
      last = std::sqrt(alpha);
    } else {
      const Real carry = std::sqrt(beta / previous_alpha) * last;
      const Real m11 = norm2 + carry * carry * alpha, m12 = -carry * alpha, m22 = alpha;
      const Real half_difference = (m11 - m22) / 2;
      const Real root = std::sqrt(half_difference * half_difference + m12 * m12);
      norm2 = (m11 + m22) / 2 + root;
      // Eigenvector (s, c) of [m11 m12; m12 m22], from the better conditioned of its two forms.
      Real s = half_difference >= 0 ? half_difference + root : m12;
      Real c = half_difference >= 0 ? m12 : root - half_difference;
      const Real length = std::sqrt(s * s + c * c);
      if (length > 0) s /= length, c /= length;
      last = (c - s * carry) * std::sqrt(alpha);
    }
    previous_alpha = alpha;
  }

  // How large the last correction z may be, in units of the tolerance. The error that adding z
  // leaves is about (1 - lambda) / lambda |z|; half the tolerance is kept in reserve.
  RF_HD Real stop_factor() const {
    const Real lambda = norm2 > 0 ? 1 / norm2 : 1;
    const Real bound = lambda < 1 ? Real(0.5) * lambda / (1 - lambda) : Real(0.5);
    return bound < Real(0.5) ? bound : Real(0.5);
  }
};

inline rf_status check_arguments(int64_t n, int64_t c, int64_t h, int64_t w, int64_t mask_count,
                                 const double weights[4], double tol, int64_t max_iter) {
  if (n < 0 || c < 0 || h < 0 || w < 0)
    return fail(RF_INVALID_ARGUMENT, "impute_linear: sizes must be >= 0");
  if (mask_count != 1 && mask_count != n) {
    return fail(RF_INVALID_ARGUMENT, "impute_linear: mask_count must be 1 or n = %lld, got %lld",
                static_cast<long long>(n), static_cast<long long>(mask_count));
  }
  double sum = 0;
  for (int i = 0; i < 4; ++i) {
    if (!(weights[i] >= 0)) return fail(RF_INVALID_ARGUMENT, "impute_linear: weights must be >= 0");
    sum += weights[i];
  }
  if (!(sum > 0 && std::isfinite(sum))) {
    return fail(RF_INVALID_ARGUMENT, "impute_linear: weights must be finite and not all 0");
  }
  if (!(tol > 0)) return fail(RF_INVALID_ARGUMENT, "impute_linear: tol must be > 0, got %g", tol);
  if (max_iter < 1 || max_iter > (1 << 30)) {
    return fail(RF_INVALID_ARGUMENT, "impute_linear: max_iter must be >= 1, got %lld",
                static_cast<long long>(max_iter));
  }
  return RF_OK;
}

// f(type_tag<In>, type_tag<Out>) for the pairs that exist: float types to themselves, uint8 to
// uint8, float16, float32.
template <typename F>
void dispatch_pair(rf_dtype in, rf_dtype out, F&& f) {
  if (in == RF_UINT8) {
    if (out == RF_UINT8) f(type_tag<uint8_t>{}, type_tag<uint8_t>{});
    if (out == RF_FLOAT16) f(type_tag<uint8_t>{}, type_tag<half_t>{});
    if (out == RF_FLOAT32) f(type_tag<uint8_t>{}, type_tag<float>{});
  } else if (in == out) {
    dispatch_float(in, [&](auto tag) { f(tag, tag); });
  }
}

inline rf_status fail_pair(rf_dtype in, rf_dtype out) {
  return fail(RF_UNSUPPORTED_DTYPE, "impute_linear has no kernel from dtype code %d to %d",
              static_cast<int>(in), static_cast<int>(out));
}

}  // namespace impute
}  // namespace rf
