// Between images in memory and the solver's arrays: read and normalise a system, write its pixels
// and noise.
#pragma once

#include <cmath>
#include <limits>

#include "common/dtype.h"
#include "cpu/impute_linear/grid.h"
#include "cpu/philox_rows.h"

namespace rf {
namespace impute {

// The arguments of rf_impute_linear.
struct Job {
  const void* x;
  const uint8_t* mask;
  void* out;
  rf_dtype in_dtype, out_dtype;
  int64_t n, c, h, w;
  bool channels_last;
  int64_t mask_stride;  // 0: one mask for all images
  double tol, empty_value, noise;
  int64_t max_iter;
  bool normal_noise;
  uint64_t seed;
  const int64_t* index;  // sample ids, or null: the position in the batch
  int32_t* iterations;   // [n, c]
  double* residual;      // [n, c] last correction relative to the range of the known pixels
  int32_t* status;       // [n, c] rf_impute_status
  int64_t* empty;        // [n] removed pixels that nothing determines

  int64_t pixel_stride() const { return channels_last ? c : 1; }
  int64_t offset(int64_t image, int64_t channel) const {
    return image * c * h * w + (channels_last ? channel : channel * h * w);
  }
  const uint8_t* mask_of(int64_t image) const { return mask + image * mask_stride; }
  int64_t sample(int64_t image) const { return index ? index[image] : image; }
};

// One system: an image and a channel. image < 0: an unused lane.
struct System {
  int64_t image, channel;
};

// Per lane: u = (value - shift) * scale with scale a power of two, so that known values span
// about 1.
struct Scaling {
  double low, high, shift, scale, range;
  bool finite;
};

// One row of a channel in the solver's precision.
template <typename Real, typename In>
void read_row(const Job& job, System s, int64_t y, Real* __restrict__ row) {
  const int64_t step = job.pixel_stride(), w = job.w;
  const In* __restrict__ in =
      static_cast<const In*>(job.x) + job.offset(s.image, s.channel) + y * w * step;
  if (step == 1) {
    for (int64_t x = 0; x < w; ++x) row[x] = static_cast<Real>(rf::load(in[x]));
  } else {
    for (int64_t x = 0; x < w; ++x) row[x] = static_cast<Real>(rf::load(in[x * step]));
  }
}

// Between rows of systems one after the other, lane_rows [kVec, lane_stride], and a row of one
// system per lane. The last, partial block moves what lies in the padding too.
template <typename Real>
void interleave(const Real* lane_rows, int64_t lane_stride, int64_t w, Real* row) {
  constexpr int kVec = VecOf<Real>::kLanes;
  for (int64_t x = 0; x < w; x += kVec) {
    V<Real> v[kVec];
    for (int lane = 0; lane < kVec; ++lane) v[lane] = load(lane_rows + lane * lane_stride + x);
    transpose(v);
    for (int k = 0; k < kVec && x + k < w; ++k) store<Real>(row + (x + k) * kVec, v[k]);
  }
}
template <typename Real>
void separate(const Real* row, int64_t w, Real* lane_rows, int64_t lane_stride) {
  constexpr int kVec = VecOf<Real>::kLanes;
  for (int64_t x = 0; x < w; x += kVec) {
    V<Real> v[kVec] = {};
    for (int k = 0; k < kVec && x + k < w; ++k) v[k] = load(row + (x + k) * kVec);
    transpose(v);
    for (int lane = 0; lane < kVec; ++lane)
      store<Real>(lane_rows + lane * lane_stride + x, v[lane]);
  }
}

// Row buffers of read_systems and write_systems.
template <typename Real>
struct RowBuffers {
  Real* values;  // [kSystems, value_stride]
  int64_t value_stride;
  float* noise;  // [w + kPhiloxRowSlack]
};

// Reads the systems into u and normalises them: known pixels scaled, removed ones 0 (the mean of
// the known).
template <typename Layout, typename In>
void read_systems(const Job& job, const System* systems, Grid<Layout>* grid,
                  const RowBuffers<typename Layout::Real>& buffers, Scaling* scaling) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Fine<Layout>& f = grid->fine;
  const Real inf = std::numeric_limits<Real>::infinity();
  V<Real> low = splat<Real>(inf), high = splat<Real>(-inf);
  M<Real> finite = ~M<Real>{};
  double sum[kVec] = {}, count[kVec] = {};
  for (int64_t y = 0; y < f.h; ++y) {
    Real* u = f.row(f.u, y);
    if constexpr (Layout::kIsLanes) {
      for (int lane = 0; lane < Layout::kSystems; ++lane) {
        if (systems[lane].image < 0) continue;
        read_row<Real, In>(job, systems[lane], y, buffers.values + lane * buffers.value_stride);
      }
      interleave(buffers.values, buffers.value_stride, f.w, u);
    } else {
      read_row<Real, In>(job, systems[0], y, u);
    }
    V<Real> row_sum{}, row_count{};
    const int8_t* removed = f.removed + y * f.stride;
    for (int64_t i = 0; i < f.n; i += kVec) {
      const M<Real> known = ~load_mask<Real>(removed + i);
      const V<Real> v = load(u + i);
      finite &= ((v - v) == V<Real>{}) | ~known;
      low = vmin<Real>(low, select<Real>(known, v, splat<Real>(inf)));
      high = vmax<Real>(high, select<Real>(known, v, splat<Real>(-inf)));
      row_sum += keep<Real>(known, v);
      row_count += keep<Real>(known, splat<Real>(Real(1)));
    }
    for (int lane = 0; lane < kVec; ++lane)
      sum[lane] += row_sum[lane], count[lane] += row_count[lane];
  }
  if constexpr (!Layout::kIsLanes) {
    for (int lane = 1; lane < kVec; ++lane) sum[0] += sum[lane], count[0] += count[lane];
    for (int lane = 1; lane < kVec; ++lane)
      sum[lane] = sum[0], count[lane] = count[0], finite[0] &= finite[lane];
  }
  low = Layout::min(low), high = Layout::max(high);
  V<Real> shift{}, scale{};
  for (int lane = 0; lane < kVec; ++lane) {
    const int system = Layout::kIsLanes ? lane : 0;
    Scaling s{0, 0, 0, 0, 0, finite[system] != 0};
    if (s.finite && count[system] > 0) {
      s.low = low[system], s.high = high[system];
      s.range = s.high - s.low;
      s.shift = static_cast<Real>(sum[system] / count[system]);
      // A constant image needs no solve: scale 0 makes every known value, and the solution, the
      // shift.
      if (s.range > 0) s.scale = std::ldexp(1.0, -std::max(std::ilogb(s.range), -100));
    }
    shift[lane] = static_cast<Real>(s.shift), scale[lane] = static_cast<Real>(s.scale);
    if (lane < Layout::kSystems) scaling[lane] = s;
  }
  for (int64_t y = 0; y < f.h; ++y) {
    Real* u = f.row(f.u, y);
    const int8_t* removed = f.removed + y * f.stride;
    for (int64_t i = 0; i < f.n; i += kVec) {
      // Scaling first would let 0 * inf of a non-finite lane into its neighbours' sums; each lane
      // is alone.
      store<Real>(u + i, keep<Real>(~load_mask<Real>(removed + i) & (scale > V<Real>{}),
                                    (load(u + i) - shift) * scale));
    }
  }
}

template <typename Out, typename Real>
RF_INLINE Out to_output(Real v) {
  if constexpr (std::is_same_v<Out, uint8_t>) {
    v = v < Real(0) ? Real(0) : v > Real(255) ? Real(255) : v;
    // Adding and taking away 2^23 (2^52) rounds to the nearest integer, ties to even, and
    // vectorises.
    constexpr Real kRound = sizeof(Real) == 4 ? Real(8388608) : Real(4503599627370496);
    return static_cast<uint8_t>(static_cast<int32_t>((v + kRound) - kRound));
  } else {
    return rf::store<Out>(static_cast<compute_t<Out>>(v));
  }
}

// out = mask ? value + level * z : in, along a row; z null: no noise. Loops are written out for
// dense pixels, so that they vectorise.
template <typename In, typename Out, typename Real>
void merge_row(const In* __restrict__ in, Out* __restrict__ out, const uint8_t* __restrict__ mask,
               const Real* __restrict__ values, const float* __restrict__ z, compute_t<In> level,
               int64_t w, int64_t step) {
  using Amount = compute_t<In>;
  const auto known = [](In v) {
    if constexpr (std::is_same_v<In, Out>) {
      return v;
    } else {
      return to_output<Out, Real>(static_cast<Real>(rf::load(v)));
    }
  };
  const auto noisy = [&](int64_t x) {
    return to_output<Out, Real>(values[x] + static_cast<Real>(level * static_cast<Amount>(z[x])));
  };
  const auto plain = [&](int64_t x) { return to_output<Out, Real>(values[x]); };
  const auto run = [&](auto filled) {
    if (step == 1) {
      for (int64_t x = 0; x < w; ++x) {
        const Out a = filled(x), b = known(in[x]);
        out[x] = mask[x] ? a : b;
      }
    } else {
      for (int64_t x = 0; x < w; ++x) out[x * step] = mask[x] ? filled(x) : known(in[x * step]);
    }
  };
  z ? run(noisy) : run(plain);
}

template <typename In, typename Out, typename Real>
void write_row(const Job& job, System s, int64_t y, const Real* values, float* noise_buffer) {
  const uint8_t* mask = job.mask_of(s.image) + y * job.w;
  const int64_t step = job.pixel_stride(),
                start = job.offset(s.image, s.channel) + y * job.w * step;
  const float* z = nullptr;
  uint8_t any = 0;
  for (int64_t x = 0; x < job.w; ++x) any |= mask[x];
  if (any && job.noise != 0) {
    z = philox_row(job.seed, job.sample(s.image), (s.channel * job.h + y) * job.w, job.w,
                   kDomainImputeNoise, job.normal_noise, noise_buffer);
  }
  merge_row<In, Out, Real>(static_cast<const In*>(job.x) + start,
                           static_cast<Out*>(job.out) + start, mask, values, z,
                           static_cast<compute_t<In>>(job.noise), job.w, step);
}

// Writes the systems: known pixels as they came, solved ones clamped to the range of the known (a
// discrete maximum principle holds), the others the empty value; noise on all removed ones.
template <typename Layout, typename In, typename Out>
void write_systems(const Job& job, const System* systems, const Scaling* scaling,
                   Grid<Layout>* grid, const RowBuffers<typename Layout::Real>& buffers) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Fine<Layout>& f = grid->fine;
  V<Real> unscale{}, shift{}, low{}, high{};
  for (int lane = 0; lane < kVec; ++lane) {
    const Scaling& s = scaling[Layout::kIsLanes ? lane : 0];
    unscale[lane] = static_cast<Real>(s.scale > 0 ? 1 / s.scale : 0);
    shift[lane] = static_cast<Real>(s.shift);
    low[lane] = static_cast<Real>(s.low), high[lane] = static_cast<Real>(s.high);
  }
  const V<Real> empty = splat<Real>(static_cast<Real>(job.empty_value));
  for (int64_t y = 0; y < f.h; ++y) {
    Real* u = f.row(f.u, y);
    const int8_t* unknown = f.unknown_row(y);
    for (int64_t i = 0; i < f.n; i += kVec) {
      const V<Real> v = vmin<Real>(vmax<Real>(load(u + i) * unscale + shift, low), high);
      store<Real>(u + i, select<Real>(load_mask<Real>(unknown + i), v, empty));
    }
    if constexpr (Layout::kIsLanes) separate(u, f.w, buffers.values, buffers.value_stride);
    for (int lane = 0; lane < Layout::kSystems; ++lane) {
      if (systems[lane].image < 0) continue;
      const Real* values = Layout::kIsLanes ? buffers.values + lane * buffers.value_stride : u;
      write_row<In, Out, Real>(job, systems[lane], y, values, buffers.noise);
    }
    // The padding must be zero again for the next system.
    for (int64_t i = f.n - kVec; i < f.n; i += kVec) {
      store<Real>(u + i, keep<Real>(load_mask<Real>(unknown + i), load(u + i)));
    }
  }
}

}  // namespace impute
}  // namespace rf
