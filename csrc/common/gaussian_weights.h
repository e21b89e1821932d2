// The weights of a Gaussian filter or of a derivative of it, one side: weights[k] is that of the
// pixel k back. The pixel k ahead has the same for even orders, the negative for odd ones. Of the
// filter itself (order 0) weights[0] + 2 * (weights[1] + ... + weights[radius]) == 1, as SciPy
// normalises them.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/qualifiers.h"

namespace rf {

// A sigma this small leaves the axis alone: SciPy's limit.
inline bool is_filtered(double sigma) { return sigma > 1e-15; }
inline int64_t effective_radius(double sigma, int64_t radius) {
  return is_filtered(sigma) ? radius : 0;
}
inline int64_t effective_order(double sigma, int64_t order) {
  return is_filtered(sigma) ? order : 0;
}

// The polynomial q in d^order exp(-x^2 / (2 sigma^2)) = q(x) exp(-x^2 / (2 sigma^2)):
// Hermite's recurrence.
RF_HD double derivative_factor(double x, double inverse_variance, int64_t order) {
  double previous = 0.0, q = 1.0;
  for (int64_t i = 0; i < order; ++i) {
    const double next = -inverse_variance * (x * q + static_cast<double>(i) * previous);
    previous = q;
    q = next;
  }
  return q;
}

template <typename C>
void gaussian_weights(double sigma, int64_t order, int64_t radius, C* weights) {
  const double inverse_variance = is_filtered(sigma) ? 1.0 / (sigma * sigma) : 0.0;
  const double factor = radius > 0 ? -0.5 / (sigma * sigma) : 0.0;
  double sum = 0.0;
  for (int64_t k = radius; k > 0; --k) sum += std::exp(factor * static_cast<double>(k * k));
  sum = 1.0 + 2.0 * sum;
  for (int64_t k = 0; k <= radius; ++k) {
    const double x = static_cast<double>(k);
    weights[k] = static_cast<C>(derivative_factor(x, inverse_variance, order) *
                                (std::exp(factor * (x * x)) / sum));
  }
}

}  // namespace rf
