// Sums that do not depend on their order: values as integers, in two words. With M the largest
// absolute value of a row of f, the high word counts units of 2^-k1, k1 the largest with
// f M 2^k1 < 2^62; the low word counts what is left in units of 2^-(k1 + k2). Both are exact for
// doubles that are not smaller than M by more than 2^-(100 - 2 log2 f), so sums have one rounding.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/qualifiers.h"

namespace rf {

// ceil(log2 f) for f >= 1.
RF_HD int log2_above(int64_t f) {
  int bits = 0;
  while ((int64_t{1} << bits) < f) ++bits;
  return bits;
}

struct FixedPoint {
  double up_high, up_more, down_high, down_more, up_low, down_low;

  // `largest` must be finite.
  RF_HD FixedPoint(double largest, int64_t f) {
    int exponent = 0;
    frexp(largest, &exponent);  // largest < 2^exponent
    const int bits = log2_above(f), low = 62 - bits;
    int high = 62 - bits - exponent;
    // Each factor must be a normal double, also where values are subnormal.
    high = largest == 0 ? 0 : high;
    const int more = high > 1000 ? high - 1000 : 0;
    up_high = ldexp(1.0, high - more);
    up_more = ldexp(1.0, more);
    down_high = ldexp(1.0, more - high);
    down_more = ldexp(1.0, -more);
    up_low = ldexp(1.0, low);
    down_low = ldexp(1.0, -low);
  }

  RF_HD void split(double v, int64_t* high, int64_t* low) const {
    const double scaled = v * up_high * up_more, whole = rint(scaled);
    *high = static_cast<int64_t>(whole);
    *low = static_cast<int64_t>(rint((scaled - whole) * up_low));
  }

  RF_HD double join(int64_t high, int64_t low) const {
    return (static_cast<double>(high) + static_cast<double>(low) * down_low) * down_high *
           down_more;
  }
};

}  // namespace rf
