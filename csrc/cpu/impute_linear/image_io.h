// Between images in memory and the solver's arrays: read
// and normalise a system, write its pixels and noise.
#pragma once

#include <cmath>
#include <limits>
#include <mutex>

#include "cpu/impute_linear/pixel_rows.h"
#include "cpu/impute_linear/stencil.h"
#include "cpu/support/philox_vec.h"

namespace rf {
namespace impute {

// The arguments of rf_impute_linear.
struct Job {
  const void* x;
  const uint8_t* mask;
  void* out;
  PixelRows rows;
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

// Per lane: u = (value - shift) * scale with scale
// a power of two, so that known values span about 1.
struct Scaling {
  double low, high, shift, scale, range;
  bool finite;
};

constexpr int64_t kPrefetchRows = 4;

// One row of a channel in the solver's precision.
template <typename Real>
void read_row(const Job& job, System s, int64_t y, Real* row) {
  const int64_t step = job.pixel_stride(), at = job.offset(s.image, s.channel) + y * job.w * step;
  job.rows.read(static_cast<const char*>(job.x) + at * job.rows.in_bytes, step, job.w, row);
}

// Asks for a row of a channel that is soon read, or written. Rows of systems in lanes lie far
// apart, and each channel starts anew: the processor does not foresee them.
template <bool kWrite>
RF_INLINE void prefetch_row(const Job& job, System s, int64_t y) {
  if (y >= job.h) return;
  const int64_t size = kWrite ? job.rows.out_bytes : job.rows.in_bytes,
                bytes = job.w * job.pixel_stride() * size;
  const char* row = static_cast<const char*>(kWrite ? job.out : job.x) +
                    job.offset(s.image, s.channel) * size + y * bytes;
  for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(row + i, kWrite);
}

// Between rows of systems one after the other, lane_rows [kVec, lane_stride], and a row of one
// system per lane. The last, partial block moves what lies in the padding too.
template <typename Real>
void interleave(const Real* lane_rows, int64_t lane_stride, int64_t w, Real* row) {
  constexpr int kVec = Vector<Real, 32>::kLanes;
  for (int64_t x = 0; x < w; x += kVec) {
    V<Real> v[kVec];
    for (int lane = 0; lane < kVec; ++lane) v[lane] = load(lane_rows + lane * lane_stride + x);
    transpose(v);
    for (int k = 0; k < kVec && x + k < w; ++k) store<Real>(row + (x + k) * kVec, v[k]);
  }
}
template <typename Real>
void separate(const Real* row, int64_t w, Real* lane_rows, int64_t lane_stride) {
  constexpr int kVec = Vector<Real, 32>::kLanes;
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
  float* noise;   // [w + kPhiloxSlack]
  float* narrow;  // [w] values on the way from a solve in double to a narrower dtype
};

// Rows [begin, end) of the systems as they are, to u, and their sums, smallest and largest known
// values, and which are finite.
template <typename Layout>
void read_rows(const Job& job, const System* systems, int64_t begin, int64_t end,
               const RowBuffers<typename Layout::Real>& buffers, const Fine<Layout>& f,
               V<typename Layout::Real>* lowest, V<typename Layout::Real>* highest,
               M<typename Layout::Real>* all_finite) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  const Real inf = std::numeric_limits<Real>::infinity();
  V<Real> low = splat<Real>(inf), high = splat<Real>(-inf);
  M<Real> finite = ~M<Real>{};
  for (int64_t y = begin; y < end; ++y) {
    Real* u = f.row(f.u, y);
    if constexpr (Layout::kIsLanes) {
      for (int lane = 0; lane < Layout::kSystems; ++lane) {
        if (systems[lane].image < 0) continue;
        prefetch_row<false>(job, systems[lane], y + kPrefetchRows);
        read_row<Real>(job, systems[lane], y, buffers.values + lane * buffers.value_stride);
      }
      interleave(buffers.values, buffers.value_stride, f.w, u);
    } else {
      prefetch_row<false>(job, systems[0], y + kPrefetchRows);
      read_row<Real>(job, systems[0], y, u);
    }
    V<Real> row_sum{};
    const int8_t* removed = f.removed + y * f.stride;
    for (int64_t i = 0; i < f.n; i += kVec) {
      const M<Real> gone = load_mask<Real>(removed + i);
      const V<Real> v = load(u + i);
      finite &= ((v - v) == V<Real>{}) | gone;
      low = min_of(low, select<Real>(gone, splat<Real>(inf), v));
      high = max_of(high, select<Real>(gone, splat<Real>(-inf), v));
      row_sum += keep<Real>(~gone, v);
    }
    store<Real>(f.row_total(y), row_sum);
  }
  *lowest = low, *highest = high, *all_finite = finite;
}

// Reads the systems into u and normalises them: known pixels scaled, removed ones 0 (the mean of
// the known); z becomes a copy if sweeps will take turns between both. known: how many known pixels
// a system has. buffers: by thread.
template <typename Layout>
void read_systems(const Job& job, const System* systems, const int64_t* known, Grid<Layout>* grid,
                  const RowBuffers<typename Layout::Real>* buffers, bool copy_to_z,
                  Scaling* scaling) {
  using Real = typename Layout::Real;
  constexpr int64_t kVec = Layout::kVec;
  Fine<Layout>& f = grid->fine;
  const Real inf = std::numeric_limits<Real>::infinity();
  V<Real> low = splat<Real>(inf), high = splat<Real>(-inf);
  M<Real> finite = ~M<Real>{};
  std::mutex mutex;
  grid->team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int thread) {
    V<Real> band_low, band_high;
    M<Real> band_finite;
    read_rows<Layout>(job, systems, begin, end, buffers[thread], f, &band_low, &band_high,
                      &band_finite);
    const std::lock_guard<std::mutex> lock(mutex);
    low = min_of(low, band_low), high = max_of(high, band_high), finite &= band_finite;
  });
  double sum[kVec] = {};
  for (int64_t y = 0; y < f.h; ++y) {
    for (int lane = 0; lane < kVec; ++lane) sum[lane] += f.row_total(y)[lane];
  }
  if constexpr (!Layout::kIsLanes) {
    for (int lane = 1; lane < kVec; ++lane) sum[0] += sum[lane], finite[0] &= finite[lane];
  }
  low = Layout::min(low), high = Layout::max(high);
  V<Real> shift{}, scale{};
  for (int lane = 0; lane < kVec; ++lane) {
    const int system = Layout::kIsLanes ? lane : 0;
    Scaling s{0, 0, 0, 0, 0, finite[system] != 0};
    if (s.finite && known[system] > 0) {
      s.low = low[system], s.high = high[system];
      s.range = s.high - s.low;
      s.shift = static_cast<Real>(sum[system] / static_cast<double>(known[system]));
      // A constant image needs no solve: scale 0 makes
      // every known value, and the solution, the shift.
      if (s.range > 0) s.scale = std::ldexp(1.0, -std::max(std::ilogb(s.range), -100));
    }
    shift[lane] = static_cast<Real>(s.shift), scale[lane] = static_cast<Real>(s.scale);
    if (lane < Layout::kSystems) scaling[lane] = s;
  }
  grid->team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
    for (int64_t y = begin; y < end; ++y) {
      Real *u = f.row(f.u, y), *z = f.row(f.z, y);
      const int8_t* removed = f.removed + y * f.stride;
      for (int64_t i = 0; i < f.n; i += kVec) {
        // Scaling first would let 0 * inf of a non-finite
        // lane into its neighbours' sums; each lane is alone.
        const V<Real> v = keep<Real>(~load_mask<Real>(removed + i) & (scale > V<Real>{}),
                                     (load(u + i) - shift) * scale);
        store<Real>(u + i, v);
        if (copy_to_z) store<Real>(z + i, v);
      }
    }
  });
}

template <typename Real>
void write_row(const Job& job, System s, int64_t y, const Real* values,
               const RowBuffers<Real>& buffers) {
  const uint8_t* mask = job.mask_of(s.image) + y * job.w;
  const int64_t step = job.pixel_stride(),
                start = job.offset(s.image, s.channel) + y * job.w * step;
  const float* z = nullptr;
  if (job.noise != 0) {
    // From the first removed pixel to the last: smooth masks leave much of a row alone.
    int64_t first = 0, end = job.w;
    while (first < end && mask[first] == 0) ++first;
    while (end > first && mask[end - 1] == 0) --end;
    if (first < end) {
      z = philox_row(job.seed, job.sample(s.image), (s.channel * job.h + y) * job.w + first,
                     end - first, kDomainImputeNoise, job.normal_noise, buffers.noise + first) -
          first;
    }
  }
  const void* filled = values;
  if (std::is_same_v<Real, double> && !job.rows.merges_double) {
    for (int64_t x = 0; x < job.w; ++x) buffers.narrow[x] = static_cast<float>(values[x]);
    filled = buffers.narrow;
  }
  job.rows.merge(static_cast<const char*>(job.x) + start * job.rows.in_bytes,
                 static_cast<char*>(job.out) + start * job.rows.out_bytes, mask, filled, z,
                 job.noise, job.w, step);
}

// Writes the systems: known pixels as they came, solved ones clamped to the range of the known (a
// discrete maximum principle holds), the others the empty value, if there are any; noise on all
// removed ones.
template <typename Layout>
void write_systems(const Job& job, const System* systems, const Scaling* scaling, bool any_empty,
                   Grid<Layout>* grid, const RowBuffers<typename Layout::Real>* all_buffers) {
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
  grid->team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int thread) {
    const RowBuffers<Real>& buffers = all_buffers[thread];
    for (int64_t y = begin; y < end; ++y) {
      Real* u = f.row(f.u, y);
      const int8_t* unknown = f.unknown_row(y);
      const auto restore = [&](Span span) {
        for (int64_t i = span.begin; i < span.end; i += kVec) {
          const V<Real> v = min_of(max_of(load(u + i) * unscale + shift, low), high);
          store<Real>(u + i, select<Real>(load_mask<Real>(unknown + i), v, empty));
        }
      };
      if (any_empty) {
        restore(Span{0, static_cast<int32_t>(f.n)});
      } else {
        each_span<Layout>(f.spans, y, f.n, restore);
      }
      if constexpr (Layout::kIsLanes) separate(u, f.w, buffers.values, buffers.value_stride);
      for (int lane = 0; lane < Layout::kSystems; ++lane) {
        if (systems[lane].image < 0) continue;
        prefetch_row<true>(job, systems[lane], y + kPrefetchRows);
        const Real* values = Layout::kIsLanes ? buffers.values + lane * buffers.value_stride : u;
        write_row<Real>(job, systems[lane], y, values, buffers);
      }
      // The padding must be zero again for the next system.
      for (int64_t i = f.n - kVec; i < f.n; i += kVec) {
        store<Real>(u + i, keep<Real>(load_mask<Real>(unknown + i), load(u + i)));
      }
    }
  });
}

}  // namespace impute
}  // namespace rf
