// What the selection ops mean, shared by every backend: counts, NumPy's percentile arithmetic, the
// order of ties.
//
// All rules come down to order statistics of a row. `exact` needs the value at one rank,
// `percentile` and `strict` the two neighbours between which NumPy interpolates.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "common/dtype.h"
#include "common/qualifiers.h"
#include "common/status.h"
#include "include/roarfast.h"

namespace rf {

// floor(t * f), where a product that misses an integer only by rounding counts as that integer:
// 0.29 * 100 is 29 (in double it is 28.999999999999996).
RF_HD int64_t exact_count(double t, int64_t f) {
  const double product = t * static_cast<double>(f) * (1.0 + 8.9e-16);
  const int64_t k = static_cast<int64_t>(floor(product));
  return k < 0 ? 0 : k > f ? f : k;
}

// The type of NumPy's percentile for arrays of T and a Python float q.
template <typename T>
using percentile_t = std::conditional_t<std::is_same_v<T, uint8_t>, double, T>;

// Rounds once, from double, to what T can represent;
// half and bfloat16 through round-to-odd in float.
template <typename T>
RF_HD double round_to(double v) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, uint8_t>) {
    return v;
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(v);
  } else {
    const float nearest = static_cast<float>(v);
    uint32_t odd = float_bits(nearest);
    const double error = fabs(v) - fabs(static_cast<double>(nearest));
    if (error != 0.0 && !(odd & 1u) && (odd & 0x7fffffffu) < 0x7f800000u)
      odd += error > 0.0 ? 1u : -1u;
    return load(store<T>(bits_float(odd)));
  }
}

// How NumPy interpolates one percentile of f values:
// between ranks `below` and `above`, with weight t.
struct Interpolation {
  int64_t below, above;
  double t, one_minus_t;  // already rounded to the dtype NumPy multiplies in
  bool from_above;        // t >= 0.5: NumPy starts from the upper value
};

// numpy.lib._function_base_impl: _get_indexes, _get_gamma and the preparations of _lerp. `wide` is
// the arithmetic for an array of q (weights stay float64), otherwise that for a Python float
// (weights become T).
template <typename T>
RF_HD Interpolation plan_percentile(double q, int64_t f, bool wide) {
  const double position = static_cast<double>(f - 1) * (q / 100.0);
  const double floored = floor(position);
  Interpolation p;
  p.below = static_cast<int64_t>(floored);
  p.above = p.below + 1;
  double gamma = position - floored;
  if (position >= static_cast<double>(f - 1)) {
    p.below = p.above = f - 1;
    gamma = position + 1.0;  // NumPy's index is -1 here; it matters for -0.0 and inf
  }
  p.from_above = gamma >= 0.5;
  p.t = wide ? gamma : round_to<T>(gamma);
  p.one_minus_t = wide ? 1.0 - gamma : round_to<T>(1.0 - gamma);
  return p;
}

// NumPy's _lerp, every operation rounded to T
// (R = percentile_t<T>) or, wide, to double (R = double).
template <typename T, bool wide>
RF_HD auto lerp(compute_t<T> a, compute_t<T> b, const Interpolation& p) {
  if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, double>) {
    const double diff = static_cast<double>(b) - static_cast<double>(a);
    return p.from_above ? b - diff * p.one_minus_t : a + diff * p.t;
  } else {
    const float diff = load(store<T>(b - a));
    if constexpr (wide) {
      return p.from_above ? static_cast<double>(b) - static_cast<double>(diff) * p.one_minus_t
                          : static_cast<double>(a) + static_cast<double>(diff) * p.t;
    } else {
      const float weight = static_cast<float>(p.from_above ? p.one_minus_t : p.t);
      const float step = load(store<T>(diff * weight));
      return load(store<T>(p.from_above ? b - step : a + step));
    }
  }
}

// q of the percentile and strict rules.
RF_HD double rule_percentile(double t, rf_order order) {
  return order == RF_MORF ? 100.0 * (1.0 - t) : 100.0 * t;
}

// The threshold of the value rule: features above (1 - t) times the maximum go (MoRF), or below t
// times the maximum (LeRF). In the arithmetic of torch: the factor is rounded to V first.
template <typename V>
RF_HD V value_threshold(V maximum, double t, rf_order order) {
  return maximum * static_cast<V>(order == RF_MORF ? 1.0 - t : t);
}

// The checks every selection function starts with.
inline rf_status check_selection(int64_t f, const double* rates, int64_t count) {
  if (f >= (int64_t{1} << 32)) {
    return fail(RF_INVALID_ARGUMENT, "a sample may have fewer than 2^32 features, got %lld",
                static_cast<long long>(f));
  }
  if (count > RF_MAX_RATES) {
    return fail(RF_INVALID_ARGUMENT, "at most %d rates fit in one call, got %lld",
                static_cast<int>(RF_MAX_RATES), static_cast<long long>(count));
  }
  for (int64_t j = 0; j < count; ++j) {
    if (!(rates[j] >= 0.0 && rates[j] <= 1.0)) {
      return fail(RF_INVALID_ARGUMENT, "rates must be in [0, 1], got %g", rates[j]);
    }
  }
  return RF_OK;
}

inline rf_status check_percentile(int64_t f, const double* q, int64_t count) {
  if (f < 1) return fail(RF_INVALID_ARGUMENT, "percentiles of nothing: samples have 0 features");
  for (int64_t j = 0; j < count; ++j) {
    if (!(q[j] >= 0.0 && q[j] <= 100.0))
      return fail(RF_INVALID_ARGUMENT, "q must be in [0, 100], got %g", q[j]);
  }
  return check_selection(f, nullptr, 0) ? RF_INVALID_ARGUMENT
         : count > RF_MAX_RATES
             ? fail(RF_INVALID_ARGUMENT, "at most %d q fit in one call, got %lld",
                    static_cast<int>(RF_MAX_RATES), static_cast<long long>(count))
             : RF_OK;
}

}  // namespace rf
