// removal_mask and fill fused: the mask of one image lives in the thread's scratch only.
#include "common/parallel.h"
#include "cpu/fill_row.h"
#include "cpu/row_mask.h"

namespace {

int64_t mask_bytes(int64_t f) { return (f + 63) & ~int64_t{63}; }

// Calls f(type_tag<X>, type_tag<A>) for the dtypes of images and maps.
template <typename F>
bool dispatch_both(rf_dtype x, rf_dtype a, const F& f) {
  bool known = false;
  rf::dispatch_any(
      x, [&](auto image) { known = rf::dispatch_any(a, [&](auto map) { f(image, map); }); });
  return known;
}

}  // namespace

extern "C" rf_status rf_remove(const void* x, const void* in, void* out, rf_dtype dtype,
                               rf_dtype in_dtype, int64_t n, int64_t c, int64_t p,
                               int channels_last, int per_feature, double drop, rf_rule rule,
                               rf_order order, int keep, uint64_t seed, const int64_t* index,
                               uint8_t* nan_flags, rf_fill_kind kind, const double* values,
                               int values_per_image, const void* other, double noise_mean,
                               double noise_std, uint64_t noise_seed, void* workspace, rf_stream) {
  const rf::ImageLayout layout{n, c, p, channels_last != 0, per_feature != 0};
  const rf::FillSpec spec{kind,      values,    values_per_image != 0, other, noise_mean,
                          noise_std, noise_seed};
  const int64_t f = layout.mask_size(), features = layout.features();
  if (const rf_status bad = rf::check_fill(layout, spec)) return bad;
  if (const rf_status bad = rf::check_selection(f, &drop, 1)) return bad;
  if (n == 0 || features == 0) return RF_OK;
  const bool known = dispatch_both(dtype, in_dtype, [&](auto image, auto map) {
    using X = typename decltype(image)::type;
    using A = typename decltype(map)::type;
    const rf::RemovalPlan<A> plan(rule, order, f, &drop, 1);
    const int64_t scratch = rf::RowRemoval<A>::scratch_bytes(f, 1) + mask_bytes(f);
    rf::parallel_for(n, rf::row_grain(features), [&](int64_t begin, int64_t end, int thread) {
      unsigned char* mine = static_cast<unsigned char*>(workspace) + thread * scratch;
      rf::RowRemoval<A> row(mine + mask_bytes(f), f, 1);
      rf::ImageFiller<X> filler(layout, spec);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t sample = index ? index[i] : i;
        const bool nan = row.load_row(static_cast<const A*>(in) + i * f);
        if (nan_flags) nan_flags[i] = nan;
        rf::mask_row(row, plan, keep != 0, seed, sample, mine);
        filler.fill(i, sample, static_cast<const X*>(x) + i * features, mine,
                    static_cast<X*>(out) + i * features);
      }
    });
  });
  return known ? RF_OK
               : rf::fail(RF_UNSUPPORTED_DTYPE, "remove has no kernel for dtype codes %d, %d",
                          dtype, in_dtype);
}

extern "C" int64_t rf_remove_workspace_bytes(rf_dtype in_dtype, int64_t n, int64_t c, int64_t p,
                                             int per_feature) {
  const int64_t f = per_feature ? c * p : p;
  int64_t bytes = 0;
  rf::dispatch_any(in_dtype, [&](auto tag) {
    using A = typename decltype(tag)::type;
    bytes = (rf::RowRemoval<A>::scratch_bytes(f, 1) + mask_bytes(f)) *
            rf::plan_threads(n, rf::row_grain(c * p));
  });
  return bytes;
}
