// removal_mask and fill in one kernel, without a mask in memory. One block per image: select in the
// map, then fill while comparing. Reads the map once per digit and once per channel.
#include <algorithm>

#include "cuda/fill_image.h"
#include "cuda/selection/row_removal.h"
#include "cuda/support/launch.h"

namespace {

static_assert(rf::kSelectThreads == rf::kMeanLanes, "one block does both");

template <typename X, typename A>
__global__ void __launch_bounds__(rf::kSelectThreads, 4)
    remove_kernel(const X* __restrict__ x,   // [n, c, p] or [n, p, c]
                  const A* __restrict__ in,  // [n, p] or as x
                  X* __restrict__ out, rf::ImageLayout layout, rf::FillSpec spec,
                  rf::RemovalParams params, int keep,
                  const int64_t* __restrict__ index,  // [n] or null
                  uint8_t* __restrict__ nan_flags) {  // [n] or null
  using Removal = rf::RowRemoval<A, 1>;
  RF_SHARED(Removal, removal, [1]);
  RF_SHARED(rf::FillShared, shared, [1]);
  const int64_t f = layout.mask_size();
  for (int64_t i = blockIdx.x; i < layout.n; i += gridDim.x) {
    const A* row = in + i * f;
    const int64_t sample = index ? index[i] : i, offset = i * layout.features();
    const unsigned wrong = removal[0].find_bounds(row, f, params, sample, nan_flags != nullptr);
    if (nan_flags && threadIdx.x == 0) nan_flags[i] = static_cast<uint8_t>(wrong);
    const rf::KeyBound<A> bound = removal[0].bounds[0];
    rf::fill_image(shared[0], layout, spec, i, sample, x + offset, out + offset, threadIdx.x,
                   rf::kSelectThreads, [&](int64_t k) {
                     return bound.removes(params.order, rf::order_key(row[k]), k, params.seed,
                                          sample) != (keep != 0);
                   });
  }
}

}  // namespace

extern "C" rf_status rf_remove(const void* x, const void* in, void* out, rf_dtype dtype,
                               rf_dtype in_dtype, int64_t n, int64_t c, int64_t p, rf_layout layout,
                               int per_feature, double drop, rf_rule rule, rf_order order, int keep,
                               uint64_t seed, const int64_t* index, uint8_t* nan_flags,
                               rf_fill_kind kind, const double* values, int values_per_image,
                               const void* other, double noise_mean, double noise_std,
                               uint64_t noise_seed, void*, rf_stream stream) {
  const rf::ImageLayout images{n, c, p, layout == RF_NHWC, per_feature != 0};
  const rf::FillSpec spec{kind,      values,    values_per_image != 0, other, noise_mean,
                          noise_std, noise_seed};
  if (const rf_status bad = rf::check_fill(images, spec)) return bad;
  if (const rf_status bad = rf::check_selection(images.mask_size(), &drop, 1)) return bad;
  if (n == 0 || images.features() == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("remove", {x, in, out})) return bad;
  const rf::RemovalParams params = rf::removal_params(rule, order, seed, &drop, 1);
  const unsigned grid = static_cast<unsigned>(std::min(n, rf::kMaxRowGrid));
  rf_status status = RF_OK;
  bool known = false;
  rf::dispatch_any(dtype, [&](auto image) {
    known = rf::dispatch_any(in_dtype, [&](auto map) {
      using X = typename decltype(image)::type;
      using A = typename decltype(map)::type;
      status = rf::launch(remove_kernel<X, A>, grid, rf::kSelectThreads, 0, stream,
                          static_cast<const X*>(x), static_cast<const A*>(in), static_cast<X*>(out),
                          images, spec, params, keep, index, nan_flags);
    });
  });
  return known ? status
               : rf::fail(RF_UNSUPPORTED_DTYPE, "remove has no kernel for dtype codes %d, %d",
                          dtype, in_dtype);
}

extern "C" int64_t rf_remove_workspace_bytes(rf_dtype, int64_t, int64_t, int64_t, int) { return 0; }
