// ROAD's noisy linear imputation on the GPU: one block per system (image and channel), which reads
// its image, solves by multigrid-preconditioned conjugate gradients and writes the result, all in
// one kernel. Blocks take system after system, so that scratch memory is per resident block. Levels
// that fit live in shared memory, the others in the workspace. Leaving early is uniform over the
// block. Images up to 32 x 32 in float32 have a kernel of their own that needs no workspace:
// impute_linear/resident.h.
#include <algorithm>

#include "cuda/impute_linear/cg.h"
#include "cuda/impute_linear/resident_kernel.h"
#include "cuda/support/launch.h"

namespace {

using namespace rf::impute;

// Threads of a block: 512 would leave too few registers for doubles.
constexpr int kSmallThreads = 256;
template <typename Real>
constexpr int kLargeThreads = sizeof(Real) == 4 ? 512 : 256;
constexpr int64_t kSmallPixels = 64 * 64;
constexpr int64_t kSharedBytes =
    72 * 1024;  // holds the levels from 56 x 56 on; registers allow one block of 512 threads per SM
constexpr int64_t kStaticSharedBytes = 4096;           // at least what the kernel has besides
constexpr int64_t kWorkspaceBytes = int64_t{1} << 29;  // at most, unless one block needs more
constexpr int64_t kMaxBlocks = 1 << 16;

// Carves the level arrays out of the block's workspace
// and shared memory; fields is in shared memory.
template <typename Real>
__device__ FineField<Real> place_fields(const DevicePlan<Real>& plan, uint8_t* global,
                                        uint8_t* shared, Field<Real>* fields) {
  const auto take = [](uint8_t*& from, int64_t bytes) {
    uint8_t* p = from;
    from += (bytes + 15) / 16 * 16;
    return p;
  };
  const auto reals = [&](uint8_t*& from, int64_t cells) {
    return reinterpret_cast<Real*>(take(from, cells * static_cast<int64_t>(sizeof(Real))));
  };
  for (int l = plan.levels - 1; l >= 1; --l) {
    uint8_t*& from = l >= plan.shared_from ? shared : global;
    const int64_t cells = static_cast<int64_t>(plan.level[l].h) * plan.level[l].w;
    Field<Real> c;
    c.r = reals(from, cells), c.y = reals(from, cells), c.b = reals(from, cells),
    c.inv = reals(from, cells);
    if (threadIdx.x == 0 && threadIdx.y == 0) fields[l] = c;
  }
  uint8_t*& from = plan.shared_from == 0 ? shared : global;
  const int64_t cells = static_cast<int64_t>(plan.level[0].h) * plan.level[0].w;
  FineField<Real> f;
  f.u = reals(from, cells), f.r = reals(from, cells), f.p = reals(from, cells),
  f.q = reals(from, cells);
  f.z = reals(from, cells), f.live = take(from, cells);
  return f;
}

template <typename Real>
__global__ void __launch_bounds__(kLargeThreads<Real>, 1)
    impute_linear_kernel(const __grid_constant__ DevicePlan<Real> plan,
                         const __grid_constant__ Arguments a) {
  RF_DYNAMIC_SHARED(uint8_t, shared_fields);
  RF_SHARED(Field<Real>, fields, [kMaxLevels]);
  RF_SHARED(Real, partial, [32]);
  RF_SHARED(double, partial_sums, [32]);
  const int h = plan.level[0].h, w = plan.level[0].w, pixels = h * w;
  uint8_t* global = a.workspace + blockIdx.x * a.bytes_per_block;
  const FineField<Real> f = place_fields(plan, global, shared_fields, fields);
  const int threads = static_cast<int>(32 * blockDim.y),
            thread = static_cast<int>(threadIdx.y * 32 + threadIdx.x);
  const Real inf = static_cast<Real>(HUGE_VAL);

  for (int64_t system = blockIdx.x; system < a.systems; system += gridDim.x) {
    const int64_t image = system / a.c, channel = system % a.c;
    const int64_t start = image * a.c * pixels + (a.channels_last ? channel : channel * pixels);
    const int64_t step = a.channels_last ? a.c : 1;
    const uint8_t* mask = a.mask + image * a.mask_stride;

    // Range and mean of the known pixels.
    Real low = inf, high = -inf;
    double sum = 0, known = 0;
    bool finite = true;
    with_type<Real>(a.in_dtype, [&](auto tag) {
      const auto* x = static_cast<const typename decltype(tag)::type*>(a.x) + start;
      for (int i = thread; i < pixels; i += threads) {
        f.live[i] = mask[i] != 0;
        const Real v = to_real<Real>(x[i * step]);
        f.u[i] = v;
        if (mask[i]) continue;
        finite = finite && v - v == 0;
        low = v < low ? v : low, high = v > high ? v : high;
        sum += v, known += 1;
      }
    });
    finite = __syncthreads_and(finite);
    low = -block_reduce(-low, Max(), partial), high = block_reduce(high, Max(), partial);
    sum = block_reduce(sum, Sum(), partial_sums), known = block_reduce(known, Sum(), partial_sums);
    double live = pixels - known;
    if (!plan.connected && live > 0) {
      drop_unreachable(plan, f.live, f.z);
      live = 0;
      for (int i = thread; i < pixels; i += threads) live += f.live[i];
      live = block_reduce(live, Sum(), partial_sums);
    } else if (known == 0) {
      for (int i = thread; i < pixels; i += threads) f.live[i] = 0;
      live = 0;
    }
    const double range =
        finite && known > 0 ? static_cast<double>(high) - static_cast<double>(low) : 0;
    const Real shift = finite && known > 0 ? static_cast<Real>(sum / known) : Real(0);
    int exponent = range > 0 ? ilogb(range) : 0;
    if (exponent < -100) exponent = -100;
    const double scale = range > 0 ? ldexp(1.0, -exponent) : 0;
    for (int i = thread; i < pixels; i += threads) {
      f.u[i] = mask[i] || !(range > 0) ? Real(0) : (f.u[i] - shift) * static_cast<Real>(scale);
    }
    __syncthreads();

    CgResult<Real> result{0, 0, true};
    const double span = range * scale;
    if (live > 0 && range > 0) {
      result =
          solve(plan, f, fields, static_cast<Real>(plan.tolerance * span), a.max_iter, partial);
    }

    // Philox makes four numbers at a time: a thread writes the pixels of one block of features.
    const int64_t first = channel * pixels, blocks_begin = first >> 2,
                  blocks_end = (first + pixels + 3) >> 2;
    const int64_t sample = a.index ? a.index[image] : image;
    const Real unscale = static_cast<Real>(range > 0 ? 1 / scale : 0);
    const auto filled = [&](int64_t i, float noise) {
      Real v = static_cast<Real>(a.empty_value);
      if (f.live[i]) {
        v = f.u[i] * unscale + shift;
        v = v > low ? v : low;
        v = v < high ? v : high;
      }
      const Real amount = a.in_dtype == RF_FLOAT64
                              ? static_cast<Real>(a.noise * static_cast<double>(noise))
                              : static_cast<Real>(static_cast<float>(a.noise) * noise);
      return v + amount;
    };
    with_types<Real>(a.in_dtype, a.out_dtype, [&](auto in_tag, auto out_tag) {
      using In = typename decltype(in_tag)::type;
      using Out = typename decltype(out_tag)::type;
      const In* in = static_cast<const In*>(a.x) + start;
      Out* out = static_cast<Out*>(a.out) + start;
      for (int64_t block = blocks_begin + thread; block < blocks_end; block += threads) {
        float noise[4];
        noise_of_block(a, a.seed, sample, block, noise);
        for (int k = 0; k < 4; ++k) {
          const int64_t i = 4 * block + k - first;
          if (i < 0 || i >= pixels) continue;
          out[i * step] = mask[i] ? from_real<Out>(filled(i, noise[k]))
                                  : known_pixel<Real, In, Out>(in[i * step]);
        }
      }
    });
    if (thread == 0) {
      a.iterations[system] = result.iterations;
      a.residual[system] = span > 0 ? static_cast<double>(result.last_correction) / span : 0;
      a.status[system] = !finite            ? RF_IMPUTE_NON_FINITE
                         : result.converged ? RF_IMPUTE_CONVERGED
                                            : RF_IMPUTE_NOT_CONVERGED;
      if (channel == 0) a.empty[image] = static_cast<int64_t>(pixels - known - live);
    }
    __syncthreads();  // the next system overwrites what this one still reads
  }
}

int64_t level_bytes(const Plan& plan, int l, int64_t real_bytes) {
  const int64_t cells = plan.size[l].h * plan.size[l].w,
                field = (cells * real_bytes + 15) / 16 * 16;
  return l == 0 ? 5 * field + (cells + 15) / 16 * 16 : 4 * field;
}

int64_t block_bytes(const Plan& plan, int64_t real_bytes) {
  int64_t bytes = 0;
  for (int l = 0; l < plan.levels; ++l) bytes += level_bytes(plan, l, real_bytes);
  return (bytes + 255) / 256 * 256;
}

int64_t block_count(int64_t systems, int64_t bytes) {
  return std::min({systems, std::max<int64_t>(kWorkspaceBytes / bytes, 1), kMaxBlocks});
}

template <typename Real>
rf_status run(const Plan& plan, double tol, Arguments a, int64_t h, int64_t w, rf_stream stream) {
  DevicePlan<Real> device{};
  device.levels = plan.levels;
  device.connected = plan.connected;
  device.centre = static_cast<Real>(plan.centre);
  device.tolerance = static_cast<Real>(tol * plan.tolerance_factor);
  for (int l = 0; l < plan.levels; ++l) {
    const Weights& s = plan.weights[l];
    device.level[l] = {static_cast<int>(plan.size[l].h),
                       static_cast<int>(plan.size[l].w),
                       {static_cast<Real>(s.edge_x), static_cast<Real>(s.edge_y),
                        static_cast<Real>(s.diag_main), static_cast<Real>(s.diag_anti)},
                       static_cast<Real>(plan.saturation[l])};
  }
  int64_t shared = 0;
  size_t of_device = 0;
  rf_status status = rf::shared_memory_limit(&of_device);
  if (status != RF_OK) return status;
  const int64_t limit =
      std::min<int64_t>(static_cast<int64_t>(of_device) - kStaticSharedBytes, kSharedBytes);
  device.shared_from = plan.levels;
  while (device.shared_from > 0) {
    const int64_t more = level_bytes(plan, device.shared_from - 1, sizeof(Real));
    if (shared + more > limit) break;
    shared += more;
    --device.shared_from;
  }
  a.bytes_per_block = block_bytes(plan, sizeof(Real));
  const int threads = h * w <= kSmallPixels ? kSmallThreads : kLargeThreads<Real>;
  const int64_t blocks = block_count(a.systems, a.bytes_per_block);
  status = rf::allow_dynamic_shared(impute_linear_kernel<Real>, static_cast<size_t>(shared));
  if (status != RF_OK) return status;
  return rf::launch(impute_linear_kernel<Real>, dim3(static_cast<unsigned>(blocks)),
                    dim3(32, static_cast<unsigned>(threads / 32)), static_cast<size_t>(shared),
                    stream, device, a);
}

}  // namespace

extern "C" int64_t rf_impute_linear_workspace_bytes(rf_dtype dtype, int64_t n, int64_t c, int64_t h,
                                                    int64_t w, double weight_main, double weight_y,
                                                    double weight_anti, double weight_x,
                                                    double tol) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return 0;
  const double weights[4] = {weight_main, weight_y, weight_anti, weight_x};
  const Plan plan = make_plan(h, w, weights);
  const bool in_double = dtype == RF_FLOAT64 || needs_double(plan, tol);
  if (is_resident(plan, in_double)) return 0;
  const int64_t bytes = block_bytes(plan, in_double ? 8 : 4);
  return block_count(n * c, bytes) * bytes;
}

extern "C" rf_status rf_impute_linear(const void* x, const uint8_t* mask, void* out,
                                      rf_dtype in_dtype, rf_dtype out_dtype, int64_t n, int64_t c,
                                      int64_t h, int64_t w, rf_layout layout, int64_t mask_count,
                                      double weight_main, double weight_y, double weight_anti,
                                      double weight_x, double tol, int64_t max_iter,
                                      double empty_value, double noise, rf_impute_noise noise_kind,
                                      uint64_t seed, const int64_t* index, int32_t* iterations,
                                      double* residual, int32_t* status, int64_t* empty,
                                      void* workspace, rf_stream stream) {
  const double weights[4] = {weight_main, weight_y, weight_anti, weight_x};
  const rf_status ok = check_arguments(n, c, h, w, mask_count, weights, tol, max_iter);
  if (ok != RF_OK || n * c * h * w == 0) return ok;
  if (const rf_status bad = rf::check_not_null(
          "impute_linear", {x, mask, out, iterations, residual, status, empty})) {
    return bad;
  }
  if (h * w > (int64_t{1} << 30)) {
    return rf::fail(RF_INVALID_ARGUMENT,
                    "impute_linear: an image may have at most 2^30 pixels on CUDA");
  }
  bool known = false;
  dispatch_pair(in_dtype, out_dtype, [&](auto, auto) { known = true; });
  if (!known) return fail_pair(in_dtype, out_dtype);
  const Plan plan = make_plan(h, w, weights);
  Arguments a{};
  a.x = x, a.mask = mask, a.out = out, a.in_dtype = in_dtype, a.out_dtype = out_dtype;
  a.systems = n * c, a.c = c, a.channels_last = layout == RF_NHWC;
  a.mask_stride = mask_count == 1 ? 0 : h * w;
  a.max_iter = static_cast<int>(max_iter);
  a.empty_value = empty_value, a.noise = noise;
  a.normal_noise = noise_kind == RF_IMPUTE_GAUSSIAN, a.seed = seed, a.index = index;
  a.iterations = iterations, a.residual = residual, a.status = status, a.empty = empty;
  a.workspace = static_cast<uint8_t*>(workspace);
  const bool in_double = in_dtype == RF_FLOAT64 || needs_double(plan, tol);
  if (is_resident(plan, in_double)) return run_resident(plan, tol, a, stream);
  if (const rf_status bad = rf::check_not_null("impute_linear", {workspace})) return bad;
  return in_double ? run<double>(plan, tol, a, h, w, stream)
                   : run<float>(plan, tol, a, h, w, stream);
}
