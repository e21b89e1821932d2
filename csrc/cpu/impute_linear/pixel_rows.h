// Rows of pixels of any dtype and layout <-> rows in the solver's precision, behind function
// pointers: the solver is compiled once per precision, not once per dtype.
#pragma once

#include <algorithm>
#include <type_traits>

#include "common/dtype.h"
#include "common/impute_plan.h"
#include "cpu/support/rows.h"
#include "cpu/support/simd.h"

namespace rf {
namespace impute {

// dense[x] = in[x * step] for x in [0, n).
template <typename T>
inline void gather_strided(const T* __restrict__ in, int64_t step, int64_t n,
                           T* __restrict__ dense) {
  int64_t x = 0;
  if constexpr (sizeof(T) == 1) {
    using Bytes = vector_t<uint8_t, 16>;
    // Every third of 48 bytes. The last two belong to the next pixel, so there must be one.
    for (; step == 3 && x + 16 < n; x += 16) {
      const T* at = in + 3 * x;
      const Bytes first = shuffle<0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 0, 0, 0, 0, 0>(
          load_as<Bytes>(at), load_as<Bytes>(at + 16));
      store_as(dense + x, shuffle<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 20, 23, 26, 29>(
                              first, load_as<Bytes>(at + 32)));
    }
  }
  for (; x < n; ++x) dense[x] = in[x * step];
}

// Pixels that do not lie side by side are brought together this many at a time, so that loops over
// them vectorise.
constexpr int64_t kPixelPiece = 64;

template <typename In, typename Real>
void read_pixels(const void* from, int64_t step, int64_t w, Real* __restrict__ row) {
  const In* __restrict__ in = static_cast<const In*>(from);
  if (step == 1) {
    for (int64_t x = 0; x < w; ++x) row[x] = static_cast<Real>(rf::load(in[x]));
  } else {
    for (int64_t begin = 0; begin < w; begin += kPixelPiece) {
      const int64_t n = std::min(kPixelPiece, w - begin);
      In dense[kPixelPiece];
      gather_strided(in + begin * step, step, n, dense);
      for (int64_t x = 0; x < n; ++x) row[begin + x] = static_cast<Real>(rf::load(dense[x]));
    }
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

template <typename T>
constexpr bool kHalf = std::is_same_v<T, half_t>;

template <typename Out, typename Value>
void output_row(const Value* values, Out* out, int64_t n) {
  if constexpr (kHalf<Out> && std::is_same_v<Value, float>) {
    store_row(values, out, n);
  } else {
    for (int64_t x = 0; x < n; ++x) out[x] = to_output<Out>(static_cast<compute_t<Out>>(values[x]));
  }
}

// out = mask ? value + level * z : in, along a row; z null: no noise.
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
    // n <= kPixelPiece, unless neither of the types is half_t.
    const auto merge = [&](int64_t begin, int64_t n, const In* __restrict__ from_dense,
                           Out* __restrict__ to_dense) __attribute__((always_inline)) {
      if constexpr (kHalf<In> || kHalf<Out>) {  // converted by the row
        Value filled_in[kPixelPiece];
        Out removed[kPixelPiece], kept[kPixelPiece];
        for (int64_t x = 0; x < n; ++x) filled_in[x] = value(begin + x);
        output_row(filled_in, removed, n);
        if constexpr (std::is_same_v<In, Out>) {
          memcpy(kept, from_dense, static_cast<size_t>(n) * sizeof(Out));
        } else {
          load_row(from_dense, filled_in, n);
          output_row(filled_in, kept, n);
        }
        if constexpr (kHalf<Out>) {  // GCC makes a branch of a choice between structs
          for (int64_t x = 0; x < n; ++x) {
            const auto gone = static_cast<uint16_t>(-static_cast<int>(mask[begin + x] != 0));
            to_dense[x].bits = (removed[x].bits & gone) | (kept[x].bits & ~gone);
          }
        } else {
          for (int64_t x = 0; x < n; ++x) to_dense[x] = mask[begin + x] ? removed[x] : kept[x];
        }
        return;
      }
      for (int64_t x = 0; x < n; ++x) {
        const Out a = to_output<Out>(value(begin + x)), b = known(from_dense[x]);
        to_dense[x] = mask[begin + x] ? a : b;
      }
    };
    if (step == 1 && !kHalf<In> && !kHalf<Out>) return merge(0, w, in, out);
    for (int64_t begin = 0; begin < w; begin += kPixelPiece) {
      const int64_t n = std::min(kPixelPiece, w - begin);
      if (step == 1) {
        merge(begin, n, in + begin, out + begin);
        continue;
      }
      In dense[kPixelPiece];
      Out merged[kPixelPiece];
      gather_strided(in + begin * step, step, n, dense);
      merge(begin, n, dense, merged);
      for (int64_t x = 0; x < n; ++x) out[(begin + x) * step] = merged[x];
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
