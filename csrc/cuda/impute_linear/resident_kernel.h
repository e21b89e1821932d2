// The kernel around resident.h: reads the image, solves, writes the result.
#pragma once

#include <algorithm>

#include "cuda/impute_linear/resident.h"
#include "cuda/support/vectors.h"

namespace rf {
namespace impute {

// What a channel's known pixels say, and how its values become u: (v - shift) * scale. In shared
// memory: the registers are wanted elsewhere.
struct ChannelRange {
  bool finite;
  int known;  // pixels
  float low, high, shift, scale, unscale;
  double range;
  // Arguments of the call: read from here, what follows from them is not kept in registers while
  // the system is solved (the diagonal of every pixel, the keys of every Philox round).
  uint64_t seed;
  float edge, diagonal;
  int h, w;
};

// Range and mean of the known pixels. The mean is only a start, so float will do; `share` = 1 /
// pixels keeps its sum in range. partial: [5][kWarps]. Ends with a barrier.
template <typename Shape>
__device__ __forceinline__ void find_range(const ResidentThread<Shape>& t, const float* v,
                                           const bool* is_known, bool has_channel,
                                           const ResidentPlan& plan, uint64_t seed,
                                           ChannelRange* result) {
  constexpr int kWarps = Shape::kWarps;
  const float share = 1.0f / static_cast<float>(t.h * t.w);
  float low = HUGE_VALF, high = -HUGE_VALF, sum = 0, count = 0, bad = 0;
  for (int k = 0; k < Shape::kCells; ++k) {
    if (!is_known[k]) continue;
    if (!(v[k] - v[k] == 0)) bad = 1;
    low = v[k] < low ? v[k] : low, high = v[k] > high ? v[k] : high;
    sum = __fmaf_rn(v[k], share, sum), count += 1;
  }
  reduce_warp<Shape>(-low, Max(), t.partial);
  reduce_warp<Shape>(high, Max(), t.partial + kWarps);
  reduce_warp<Shape>(sum, Sum(), t.partial + 2 * kWarps);
  reduce_warp<Shape>(count, Sum(), t.partial + 3 * kWarps);
  reduce_warp<Shape>(bad, Max(), t.partial + 4 * kWarps);
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    ChannelRange c;
    c.low = -reduce_partial<Shape>(Max(), t.partial);
    c.high = reduce_partial<Shape>(Max(), t.partial + kWarps);
    sum = reduce_partial<Shape>(Sum(), t.partial + 2 * kWarps);
    count = reduce_partial<Shape>(Sum(), t.partial + 3 * kWarps);
    c.finite = !(reduce_partial<Shape>(Max(), t.partial + 4 * kWarps) > 0);
    c.known = static_cast<int>(count);
    const bool usable = has_channel && c.finite && count > 0;
    c.range = usable ? static_cast<double>(c.high) - static_cast<double>(c.low) : 0;
    c.shift = usable ? sum / (count * share) : 0.0f;
    int exponent = c.range > 0 ? ilogb(c.range) : 0;
    if (exponent < -100) exponent = -100;
    c.scale = c.range > 0 ? ldexpf(1.0f, -exponent) : 0.0f;
    c.unscale = c.range > 0 ? ldexpf(1.0f, exponent) : 0.0f;
    c.seed = seed, c.edge = plan.edge, c.diagonal = plan.diagonal;
    c.h = t.h, c.w = t.w;
    *result = c;
  }
  __syncthreads();
}

// Writes a channel: known pixels as they were, the others from t.y, where `unknown` pixels have
// their value; all with noise. A thread writes the four pixels that one Philox block belongs to.
template <typename Shape, typename In, typename Out>
__device__ __forceinline__ void write_channel(const ResidentThread<Shape>& t, const Arguments& a,
                                              uint64_t seed, int64_t image, int channel,
                                              const uint8_t* mask) {
  const int pixels = t.h * t.w, rank = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  const int64_t first = static_cast<int64_t>(channel) * pixels;
  const int64_t step = a.channels_last ? a.c : 1;
  const int64_t start = image * a.c * pixels + (a.channels_last ? channel : first);
  const In* in = static_cast<const In*>(a.x) + start;
  Out* out = static_cast<Out*>(a.out) + start;
  const int64_t sample = a.index ? a.index[image] : image;
  const float amount = static_cast<float>(a.noise);
  const int offset = static_cast<int>(first & 3);  // of pixel 0 in its Philox block
  const bool fours = step == 1 && offset == 0 && t.w % 4 == 0 &&
                     reinterpret_cast<uintptr_t>(in) % alignof(Four<In>) == 0 &&
                     reinterpret_cast<uintptr_t>(out) % alignof(Four<Out>) == 0 &&
                     reinterpret_cast<uintptr_t>(mask) % 4 == 0;
  const int blocks = (pixels + offset + 3) / 4;
  for (int block = rank; block < blocks; block += Shape::kThreads) {
    const int begin = 4 * block - offset;
    float noise[4];
    noise_of_block(a, seed, sample, (first >> 2) + block, noise);
    if (fours) {
      const int y = begin / t.w, x = begin - y * t.w;
      const float* filled = t.y + (y + 1) * Shape::kPitch + x + 1;
      const Four<In> old = *reinterpret_cast<const Four<In>*>(in + begin);
      const Four<uint8_t> removed = *reinterpret_cast<const Four<uint8_t>*>(mask + begin);
      Out result[4];
      for (int k = 0; k < 4; ++k) {
        result[k] = removed.v[k] ? from_real<Out>(filled[k] + amount * noise[k])
                                 : known_pixel<float, In, Out>(old.v[k]);
      }
      store_four(out + begin, result);
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      const int i = begin + k;
      if (i < 0 || i >= pixels) continue;
      const int y = i / t.w, x = i - y * t.w;
      out[i * step] = mask[i]
                          ? from_real<Out>(t.y[(y + 1) * Shape::kPitch + x + 1] + amount * noise[k])
                          : known_pixel<float, In, Out>(in[i * step]);
    }
  }
}

template <typename Shape, int kChannels>
__global__ void __launch_bounds__(Shape::kThreads* kChannels, 1)
    impute_resident_kernel(const __grid_constant__ ResidentPlan plan,
                           const __grid_constant__ Arguments a) {
  constexpr int kCells = Shape::kCells;
  RF_DYNAMIC_SHARED(float, memory);
  RF_SHARED(float, partials, [kChannels * 5 * Shape::kWarps]);
  RF_SHARED(ChannelRange, ranges, [kChannels]);
  RF_SHARED(CgState, states, [kChannels]);
  const int own = static_cast<int>(threadIdx.z), channels = static_cast<int>(blockDim.z);
  const int rank = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  const int all = (2 * Shape::kField + 3 * plan.cells) * channels + plan.cells;
  for (int i = own * Shape::kThreads + rank; i < all; i += channels * Shape::kThreads)
    memory[i] = 0;

  ResidentThread<Shape> t;
  t.column = static_cast<int>(threadIdx.x + threadIdx.y % Shape::kAcross * 32);
  t.row = static_cast<int>(threadIdx.y / Shape::kAcross) * kCells;
  t.first = (t.row + 1) * Shape::kPitch + t.column + 1;
  t.h = plan.level[0].h, t.w = plan.level[0].w;
  t.y = memory + 2 * own * Shape::kField, t.z = t.y + Shape::kField;
  t.partial = partials + own * 5 * Shape::kWarps;
  ResidentFields f;
  f.inv = memory + 2 * channels * Shape::kField;
  f.r = f.inv + (3 * own + 1) * plan.cells, f.y = f.r + plan.cells, f.b = f.y + plan.cells;

  const int pixels = t.h * t.w;
  // A block per image (and group of channels): a loop over images would keep registers from one to
  // the next that the pixels need.
  const unsigned groups = static_cast<unsigned>((a.c + channels - 1) / channels);
  const unsigned of_block = blockIdx.x / groups;
  const int64_t image = of_block;
  const int channel = static_cast<int>(blockIdx.x - of_block * groups) * channels + own;
  const bool has_channel = channel < a.c;
  const uint8_t* mask = a.mask + image * a.mask_stride;

  float u[kCells], inv[kCells];
  bool known[kCells];
  t.for_own([&](int k, int x, int y, int) {
    known[k] = t.inside(x, y) && !mask[t.inside(x, y) ? y * t.w + x : 0];
    u[k] = 0;
  });
  if (has_channel) {
    const int64_t step = a.channels_last ? a.c : 1;
    const int64_t start =
        image * a.c * pixels + (a.channels_last ? channel : static_cast<int64_t>(channel) * pixels);
    with_type<float>(a.in_dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* x = static_cast<const T*>(a.x) + start;
      t.for_own([&](int k, int column, int row, int) {
        if (known[k]) u[k] = to_real<float>(x[(row * t.w + column) * step]);
      });
    });
  }
  find_range(t, u, known, has_channel, plan, a.seed, &ranges[own]);
  const ChannelRange& c = ranges[own];
  const int live = c.known > 0 ? pixels - c.known : 0;
  const float damping = Shape::kDamped ? 1 + plan.centre : 1.0f;
  t.for_own([&](int k, int x, int y, int) {
    u[k] = known[k] && c.range > 0 ? (u[k] - c.shift) * c.scale : 0.0f;
    const int across = (x > 0) + (x + 1 < c.w), along = (y > 0) + (y + 1 < c.h);
    const float weights = c.edge * static_cast<float>(across + along) +
                          c.diagonal * static_cast<float>(across * along);
    inv[k] = known[k] || !t.inside(x, y) ? 0.0f : 1 / (weights * damping);
  });
  const bool active = live > 0 && c.range > 0;
  const double span = c.range * static_cast<double>(c.scale);
  if (rank == 0) states[own].start(static_cast<float>(plan.tolerance * span));
  if (__syncthreads_or(active)) {
    solve_resident(t, plan, f, u, inv, active, a.max_iter, partials, &states[own]);
  }
  t.for_own([&](int k, int x, int y, int i) {
    float v = __fmaf_rn(u[k], c.unscale, c.shift);
    v = v > c.low ? v : c.low;
    v = v < c.high ? v : c.high;
    if (t.inside(x, y)) t.y[i] = live > 0 ? v : static_cast<float>(a.empty_value);
  });
  __syncthreads();
  if (has_channel) {
    with_types<float>(a.in_dtype, a.out_dtype, [&](auto in, auto out) {
      write_channel<Shape, typename decltype(in)::type, typename decltype(out)::type>(
          t, a, c.seed, image, channel, mask);
    });
    if (rank == 0) {
      const int64_t system = image * a.c + channel;
      const CgResult<float> result = active ? states[own].result : CgResult<float>{0, 0, true};
      a.iterations[system] = result.iterations;
      a.residual[system] = span > 0 ? static_cast<double>(result.last_correction) / span : 0;
      a.status[system] = !c.finite          ? RF_IMPUTE_NON_FINITE
                         : result.converged ? RF_IMPUTE_CONVERGED
                                            : RF_IMPUTE_NOT_CONVERGED;
      if (channel == 0) a.empty[image] = pixels - c.known - live;
    }
  }
}

// Whether the images of a plan are solved this way, on any device.
inline bool is_resident(const Plan& plan, bool in_double) {
  const int64_t side = std::max(plan.size[0].h, plan.size[0].w);
  const bool damped = plan.centre != 0;
  return !in_double && side <= (damped ? Resident32::kSide : Resident64::kSide);
}

inline ResidentPlan resident_plan(const Plan& plan, double tol) {
  ResidentPlan r{};
  r.levels = plan.levels;
  r.centre = static_cast<float>(plan.centre);
  r.tolerance = static_cast<float>(tol * plan.tolerance_factor);
  r.edge = static_cast<float>(plan.weights[0].edge_x);
  r.diagonal = static_cast<float>(plan.weights[0].diag_main);
  r.first_warp_level = plan.levels;
  for (int l = plan.levels - 1; l >= 0; --l) {
    const Weights& s = plan.weights[l];
    r.level[l] = {static_cast<int>(plan.size[l].h), static_cast<int>(plan.size[l].w), 0, 0};
    while ((1 << r.level[l].log_pitch) < r.level[l].w) ++r.level[l].log_pitch;
    r.weights[l] = {static_cast<float>(s.edge_x), static_cast<float>(s.edge_y),
                    static_cast<float>(s.diag_main), static_cast<float>(s.diag_anti)};
    r.saturation[l] = static_cast<float>(plan.saturation[l]);
    if (l > 0 && r.level[l].h * r.level[l].w <= kWarpCells) r.first_warp_level = l;
  }
  for (int l = 1; l < plan.levels; ++l) {
    r.level[l].begin = r.cells;
    r.cells += (r.level[l].h + 2) * (r.level[l].w + 2);
  }
  return r;
}

template <typename Shape, int kChannels>
rf_status run_resident_as(const ResidentPlan& plan, const Arguments& a, rf_stream stream) {
  const int channels = static_cast<int>(std::min<int64_t>(a.c, kChannels));
  const size_t floats = (2 * Shape::kField + 3 * plan.cells) * channels + plan.cells;
  const int64_t groups = a.systems / a.c * ((a.c + channels - 1) / channels);
  if (groups > INT32_MAX) {
    return fail(RF_INVALID_ARGUMENT, "impute_linear: %lld images are too many for one launch",
                static_cast<long long>(a.systems / a.c));
  }
  const auto kernel = impute_resident_kernel<Shape, kChannels>;
  const rf_status status = allow_dynamic_shared(kernel, 4 * floats);
  if (status != RF_OK) return status;
  return launch(kernel, dim3(static_cast<unsigned>(groups)),
                dim3(32, Shape::kWarps, static_cast<unsigned>(channels)), 4 * floats, stream, plan,
                a);
}

inline rf_status run_resident(const Plan& plan, double tol, const Arguments& a, rf_stream stream) {
  const ResidentPlan resident = resident_plan(plan, tol);
  const GridSize size = plan.size[0];
  if (std::max(size.h, size.w) <= Resident32::kSide) {
    return run_resident_as<Resident32, kResidentChannels>(resident, a, stream);
  }
  return run_resident_as<Resident64, kResidentChannels>(resident, a, stream);
}

}  // namespace impute
}  // namespace rf
