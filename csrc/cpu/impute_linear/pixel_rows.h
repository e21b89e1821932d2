// Rows of pixels of any dtype and layout <-> rows in the solver's precision, behind function
// pointers: the solver is compiled once per precision, not once per dtype.
#pragma once

#include <type_traits>

#include "common/dtype.h"
#include "common/impute_plan.h"

namespace rf {
namespace impute {

template <typename In, typename Real>
void read_pixels(const void* from, int64_t step, int64_t w, Real* __restrict__ row) {
  const In* __restrict__ in = static_cast<const In*>(from);
  if (step == 1) {
    for (int64_t x = 0; x < w; ++x) row[x] = static_cast<Real>(rf::load(in[x]));
  } else {
    for (int64_t x = 0; x < w; ++x) row[x] = static_cast<Real>(rf::load(in[x * step]));
  }
}

template <typename Out>
inline __attribute__((always_inline)) Out to_output(compute_t<Out> v) {
  if constexpr (std::is_same_v<Out, uint8_t>) {
    v = v < 0 ? 0 : v > 255 ? 255 : v;
    // Adding and taking away 2^23 rounds to the nearest integer, ties to even, and vectorises.
    constexpr float kRound = 8388608;
    return static_cast<uint8_t>(static_cast<int32_t>((v + kRound) - kRound));
  } else {
    return rf::store<Out>(v);
  }
}

// out = mask ? value + level * z : in, along a row; z null: no noise. Loops are written out for
// dense pixels, so that they vectorise.
template <typename In, typename Out>
void merge_pixels(const void* from, void* to, const uint8_t* __restrict__ mask, const void* filled,
                  const float* __restrict__ z, double noise, int64_t w, int64_t step) {
  using Value = compute_t<In>;
  const In* __restrict__ in = static_cast<const In*>(from);
  const Value* __restrict__ values = static_cast<const Value*>(filled);
  Out* __restrict__ out = static_cast<Out*>(to);
  const Value level = static_cast<Value>(noise);
  const auto known = [](In v) {
    if constexpr (std::is_same_v<In, Out>) {
      return v;
    } else {
      return to_output<Out>(rf::load(v));
    }
  };
  const auto run = [&](auto value) {
    if (step == 1) {
      for (int64_t x = 0; x < w; ++x) {
        const Out a = to_output<Out>(value(x)), b = known(in[x]);
        out[x] = mask[x] ? a : b;
      }
    } else {
      for (int64_t x = 0; x < w; ++x) {
        out[x * step] = mask[x] ? to_output<Out>(value(x)) : known(in[x * step]);
      }
    }
  };
  if (z) {
    run([&](int64_t x) { return values[x] + level * static_cast<Value>(z[x]); });
  } else {
    run([&](int64_t x) { return values[x]; });
  }
}

// The rows of one pair of dtypes.
struct PixelRows {
  int64_t in_bytes, out_bytes;
  bool merges_double;  // merge takes doubles, else floats
  void (*read_floats)(const void* from, int64_t step, int64_t w, float* row);
  void (*read_doubles)(const void* from, int64_t step, int64_t w, double* row);
  void (*merge)(const void* from, void* to, const uint8_t* mask, const void* values, const float* z,
                double noise, int64_t w, int64_t step);

  void read(const void* from, int64_t step, int64_t w, float* row) const {
    read_floats(from, step, w, row);
  }
  void read(const void* from, int64_t step, int64_t w, double* row) const {
    read_doubles(from, step, w, row);
  }
};

// False if there is no such pair.
inline bool find_pixel_rows(rf_dtype in, rf_dtype out, PixelRows* rows) {
  bool known = false;
  dispatch_pair(in, out, [&](auto from, auto to) {
    using In = typename decltype(from)::type;
    using Out = typename decltype(to)::type;
    known = true;
    *rows = {sizeof(In),
             sizeof(Out),
             std::is_same_v<In, double>,
             read_pixels<In, float>,
             read_pixels<In, double>,
             merge_pixels<In, Out>};
  });
  return known;
}

}  // namespace impute
}  // namespace rf
