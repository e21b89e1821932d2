// 32-byte vectors and the two ways an image lies in them.
// The solver is written once, over rows of vectors:
//
//   Rows   one system at a time; a vector holds neighbouring pixels of a row (large images)
//   Lanes  as many systems as a vector has lanes, pixel by pixel (small images)
//
// The vector length is the same at every SIMD level,
// so that sums are formed in the same order everywhere.
#pragma once

#include <cstdint>
#include <cstring>

#include "cpu/support/simd.h"

namespace rf {
namespace impute {

#define RF_INLINE inline __attribute__((always_inline))

template <typename Real>
using V = vector_t<Real, 32>;
template <typename Real>
using M = decltype(V<Real>{} < V<Real>{});  // integers, all bits set where true

template <typename Real>
RF_INLINE V<Real> load(const Real* p) {
  return *reinterpret_cast<const V<Real>*>(p);
}
template <typename Real>
RF_INLINE void store(Real* p, V<Real> v) {
  *reinterpret_cast<V<Real>*>(p) = v;
}
template <typename Real>
RF_INLINE V<Real> splat(Real s) {
  return s - V<Real>{};
}
template <typename Real>
RF_INLINE M<Real> load_mask(const int8_t* p) {
#ifdef __AVX2__  // GCC takes the portable form apart, byte by byte
  if constexpr (sizeof(Real) == 4) {
    return reinterpret_cast<M<Real>>(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  } else {
    int32_t four;
    memcpy(&four, p, 4);
    return reinterpret_cast<M<Real>>(_mm256_cvtepi8_epi64(_mm_cvtsi32_si128(four)));
  }
#else
  return __builtin_convertvector((load_as<vector_t<int8_t, Vector<Real, 32>::kLanes>>(p)), M<Real>);
#endif
}
template <typename Real>
RF_INLINE V<Real> keep(M<Real> m, V<Real> v) {  // v where m, else +0
  return reinterpret_cast<V<Real>>(reinterpret_cast<M<Real>>(v) & m);
}
template <typename Real>
RF_INLINE V<Real> select(M<Real> m, V<Real> yes, V<Real> no) {
  return m ? yes : no;
}
// One pixel per vector element. Neighbours along the row come from the vectors before and after.
template <typename R>
struct Rows {
  using Real = R;
  static constexpr bool kIsLanes = false;
  static constexpr int kSystems = 1;
  static constexpr int kVec = Vector<R, 32>::kLanes;
  // Vector elements in a row of w pixels, and a stride: even number of vectors, not a power of two.
  static int64_t row_length(int64_t w) { return (w + kVec - 1) / kVec * kVec; }
  static int64_t row_stride(int64_t w) {
    const int64_t pair = 2 * kVec, n = (w + pair - 1) / pair * pair;
    return n * static_cast<int64_t>(sizeof(R)) % 512 == 0 ? n + pair : n;
  }
  static int64_t index(int64_t x, int) { return x; }

  static RF_INLINE V<R> left(V<R> before,
                             V<R> here) {  // the value one pixel to the left, for each pixel
    if constexpr (kVec == 8) {
      return shuffle<7, 8, 9, 10, 11, 12, 13, 14>(before, here);
    } else {
      return shuffle<3, 4, 5, 6>(before, here);
    }
  }
  // What left and right have in common: the halves of two vectors that meet.
  static RF_INLINE V<R> meet(V<R> a, V<R> b) {
    if constexpr (kVec == 8) {
      return shuffle<4, 5, 6, 7, 8, 9, 10, 11>(a, b);
    } else {
      return shuffle<2, 3, 4, 5>(a, b);
    }
  }
  static RF_INLINE V<R> left(V<R>, V<R> meeting, V<R> here) {
    if constexpr (kVec == 8) {
      return shuffle<3, 8, 9, 10, 7, 12, 13, 14>(meeting, here);
    } else {
      return shuffle<1, 4, 3, 6>(meeting, here);
    }
  }
  static RF_INLINE V<R> right(V<R> here, V<R> meeting, V<R>) {
    if constexpr (kVec == 8) {
      return shuffle<1, 2, 3, 8, 5, 6, 7, 12>(here, meeting);
    } else {
      return shuffle<1, 4, 3, 6>(here, meeting);
    }
  }
  static RF_INLINE V<R> right(V<R> here, V<R> after) {
    if constexpr (kVec == 8) {
      return shuffle<1, 2, 3, 4, 5, 6, 7, 8>(here, after);
    } else {
      return shuffle<1, 2, 3, 4>(here, after);
    }
  }
  // Two vectors of a row <-> its pixels at even and at odd positions.
  static RF_INLINE void split(V<R> a, V<R> b, V<R>* even, V<R>* odd) {
    if constexpr (kVec == 8) {
      *even = shuffle<0, 2, 4, 6, 8, 10, 12, 14>(a, b);
      *odd = shuffle<1, 3, 5, 7, 9, 11, 13, 15>(a, b);
    } else {
      *even = shuffle<0, 2, 4, 6>(a, b);
      *odd = shuffle<1, 3, 5, 7>(a, b);
    }
  }
  static RF_INLINE void join(V<R> even, V<R> odd, V<R>* a, V<R>* b) {
    if constexpr (kVec == 8) {
      *a = shuffle<0, 8, 1, 9, 2, 10, 3, 11>(even, odd);
      *b = shuffle<4, 12, 5, 13, 6, 14, 7, 15>(even, odd);
    } else {
      *a = shuffle<0, 4, 1, 5>(even, odd);
      *b = shuffle<2, 6, 3, 7>(even, odd);
    }
  }
  // Every lane gets the total.
  static RF_INLINE V<R> sum(V<R> v) {
    R t[kVec];
    memcpy(t, &v, sizeof(t));
    for (int step = kVec / 2; step > 0; step /= 2) {
      for (int i = 0; i < step; ++i) t[i] += t[i + step];
    }
    return splat<R>(t[0]);
  }
  static RF_INLINE V<R> max(V<R> v) {
    R t = v[0];
    for (int i = 1; i < kVec; ++i) t = v[i] > t ? v[i] : t;
    return splat<R>(t);
  }
  static RF_INLINE V<R> min(V<R> v) {
    R t = v[0];
    for (int i = 1; i < kVec; ++i) t = v[i] < t ? v[i] : t;
    return splat<R>(t);
  }
};

// One system per vector element: neighbours are whole vectors, sums need no reduction.
template <typename R>
struct Lanes {
  using Real = R;
  static constexpr bool kIsLanes = true;
  static constexpr int kVec = Vector<R, 32>::kLanes;
  static constexpr int kSystems = kVec;
  static int64_t row_length(int64_t w) { return w * kVec; }
  static int64_t row_stride(int64_t w) { return (w + w % 2) * kVec; }
  static int64_t index(int64_t x, int lane) { return x * kVec + lane; }

  static RF_INLINE V<R> left(V<R> before, V<R>) { return before; }
  static RF_INLINE V<R> right(V<R>, V<R> after) { return after; }
  static RF_INLINE V<R> meet(V<R>, V<R>) { return V<R>{}; }
  static RF_INLINE V<R> left(V<R> before, V<R>, V<R>) { return before; }
  static RF_INLINE V<R> right(V<R>, V<R>, V<R> after) { return after; }
  static RF_INLINE void split(V<R> a, V<R> b, V<R>* even, V<R>* odd) { *even = a, *odd = b; }
  static RF_INLINE void join(V<R> even, V<R> odd, V<R>* a, V<R>* b) { *a = even, *b = odd; }
  static RF_INLINE V<R> sum(V<R> v) { return v; }
  static RF_INLINE V<R> max(V<R> v) { return v; }
  static RF_INLINE V<R> min(V<R> v) { return v; }
};

// Rows become columns: v[i][k] <-> v[k][i].
RF_INLINE void transpose(V<float> v[8]) {
  V<float> t[8], s[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = shuffle<0, 8, 1, 9, 4, 12, 5, 13>(v[i], v[i + 1]);
    t[i + 1] = shuffle<2, 10, 3, 11, 6, 14, 7, 15>(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int k = 0; k < 2; ++k) {
      s[i + 2 * k] = shuffle<0, 1, 8, 9, 4, 5, 12, 13>(t[i + k], t[i + k + 2]);
      s[i + 2 * k + 1] = shuffle<2, 3, 10, 11, 6, 7, 14, 15>(t[i + k], t[i + k + 2]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = shuffle<0, 1, 2, 3, 8, 9, 10, 11>(s[i], s[i + 4]);
    v[i + 4] = shuffle<4, 5, 6, 7, 12, 13, 14, 15>(s[i], s[i + 4]);
  }
}
RF_INLINE void transpose(V<double> v[4]) {
  const V<double> a = shuffle<0, 4, 2, 6>(v[0], v[1]);
  const V<double> b = shuffle<1, 5, 3, 7>(v[0], v[1]);
  const V<double> c = shuffle<0, 4, 2, 6>(v[2], v[3]);
  const V<double> d = shuffle<1, 5, 3, 7>(v[2], v[3]);
  v[0] = shuffle<0, 1, 4, 5>(a, c);
  v[1] = shuffle<0, 1, 4, 5>(b, d);
  v[2] = shuffle<2, 3, 6, 7>(a, c);
  v[3] = shuffle<2, 3, 6, 7>(b, d);
}

}  // namespace impute
}  // namespace rf
