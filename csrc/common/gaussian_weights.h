// The weights of a Gaussian filter, one side: weights[k] is that of the pixels k away, and
// weights[0] + 2 * (weights[1] + ... + weights[radius]) == 1, as SciPy normalises them.
#pragma once

#include <cmath>
#include <cstdint>

namespace rf {

// A sigma this small leaves the axis alone: SciPy's limit.
inline int64_t effective_radius(double sigma, int64_t radius) { return sigma > 1e-15 ? radius : 0; }

template <typename C>
void gaussian_weights(double sigma, int64_t radius, C* weights) {
  const double factor = radius > 0 ? -0.5 / (sigma * sigma) : 0.0;
  double sum = 0.0;
  for (int64_t k = radius; k > 0; --k) sum += std::exp(factor * static_cast<double>(k * k));
  sum = 1.0 + 2.0 * sum;
  for (int64_t k = 0; k <= radius; ++k) {
    weights[k] = static_cast<C>(std::exp(factor * static_cast<double>(k * k)) / sum);
  }
}

}  // namespace rf
