// Sums of the values of each code: the largest value first, then one pass into tables of integers.
// Two tables take turns, since neighbours often have one code and would wait for each other.
#include "common/code_sums.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "common/dtype.h"
#include "common/status.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int kCodes = 256, kTables = 2, kLanes = 16;

struct Sums {
  int64_t high[kTables][kCodes], low[kTables][kCodes];
};

// The largest absolute value; NaN or infinite if some value is.
template <typename T>
double largest_of(const T* x, int64_t f) {
  using V = rf::compute_t<T>;
  V most[kLanes] = {}, sum[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= f; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const V v = rf::load(x[i + l]), a = v < 0 ? -v : v;
      most[l] = a > most[l] ? a : most[l];
      sum[l] += v - v;  // 0, or NaN for NaN and infinity
    }
  }
  for (; i < f; ++i) {
    const V v = rf::load(x[i]), a = v < 0 ? -v : v;
    most[0] = a > most[0] ? a : most[0];
    sum[0] += v - v;
  }
  V result = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (sum[l] != 0) return std::numeric_limits<double>::quiet_NaN();
    result = std::max(result, most[l]);
  }
  return static_cast<double>(result);
}

template <typename T>
void add_row(const T* x, const uint8_t* codes, int64_t f, const rf::FixedPoint& point, Sums* sums) {
  int64_t i = 0;
  for (; i + kTables <= f; i += kTables) {
    for (int t = 0; t < kTables; ++t) {
      int64_t high, low;
      point.split(static_cast<double>(rf::load(x[i + t])), &high, &low);
      sums->high[t][codes[i + t]] += high;
      sums->low[t][codes[i + t]] += low;
    }
  }
  for (; i < f; ++i) {
    int64_t high, low;
    point.split(static_cast<double>(rf::load(x[i])), &high, &low);
    sums->high[0][codes[i]] += high;
    sums->low[0][codes[i]] += low;
  }
}

}  // namespace

extern "C" rf_status rf_code_sums(const void* in, const uint8_t* codes, double* out, rf_dtype dtype,
                                  int64_t n, int64_t f, int64_t count, rf_stream) {
  if (count < 1 || count > kCodes) {
    return rf::fail(RF_INVALID_ARGUMENT, "count must be 1 to %d, got %lld", kCodes,
                    static_cast<long long>(count));
  }
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(f, 1));
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    rf::parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
      Sums sums;
      for (int64_t i = begin; i < end; ++i) {
        const T* row = static_cast<const T*>(in) + i * f;
        double* target = out + i * count;
        const double largest = largest_of(row, f);
        if (largest != largest) {
          std::fill(target, target + count, largest);
          continue;
        }
        const rf::FixedPoint point(largest, f);
        std::memset(&sums, 0, sizeof(sums));
        add_row(row, codes + i * f, f, point, &sums);
        for (int64_t c = 0; c < count; ++c) {
          int64_t high = 0, low = 0;
          for (int t = 0; t < kTables; ++t) high += sums.high[t][c], low += sums.low[t][c];
          target[c] = point.join(high, low);
        }
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("code_sums", dtype);
}
