// removal_mask and fill fused: the mask of one image lives in the thread's scratch only.
#include "cpu/fill_image.h"
#include "cpu/selection/row_removal.h"

namespace {

rf::SelectedRows map_rows(rf_dtype dtype, const rf::ImageLayout& layout) {
  rf::SelectedRows rows(dtype, layout.n, layout.mask_size(), 1);
  rows.grain = rf::row_grain(layout.features());
  rows.extra = (rows.f + 63) & ~int64_t{63};  // the mask
  return rows;
}

}  // namespace

extern "C" rf_status rf_remove(const void* x, const void* in, void* out, rf_dtype dtype,
                               rf_dtype in_dtype, int64_t n, int64_t c, int64_t p, rf_layout layout,
                               int per_feature, double drop, rf_rule rule, rf_order order, int keep,
                               uint64_t seed, const int64_t* index, uint8_t* nan_flags,
                               rf_fill_kind kind, const double* values, int values_per_image,
                               const void* other, double noise_mean, double noise_std,
                               uint64_t noise_seed, void* workspace, rf_stream) {
  const rf::ImageLayout images{n, c, p, layout == RF_NHWC, per_feature != 0};
  const rf::FillSpec spec{kind,      values,    values_per_image != 0, other, noise_mean,
                          noise_std, noise_seed};
  const rf::SelectedRows rows = map_rows(in_dtype, images);
  if (const rf_status bad = rf::check_fill(images, spec)) return bad;
  if (const rf_status bad = rf::check_selection(rows.f, &drop, 1)) return bad;
  if (!rf::is_dtype(dtype) || !rf::is_dtype(in_dtype)) {
    return rf::fail(RF_UNSUPPORTED_DTYPE, "remove has no kernel for dtype codes %d, %d", dtype,
                    in_dtype);
  }
  if (n == 0 || images.features() == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("remove", {x, in, out})) return bad;
  const rf::RemovalPlan plan(in_dtype, rule, order, rows.f, &drop, 1);
  rows.for_each(in, nan_flags, workspace, [&](auto& row, int64_t i, uint8_t* mask) {
    const int64_t sample = index ? index[i] : i;
    row.write_mask(plan, keep != 0, seed, sample, mask);
    rf::FillScratch scratch;
    rf::fill_image(dtype, images, spec, i, sample, x, mask, out, scratch);
  });
  return RF_OK;
}

extern "C" int64_t rf_remove_workspace_bytes(rf_dtype in_dtype, int64_t n, int64_t c, int64_t p,
                                             int per_feature) {
  return map_rows(in_dtype, {n, c, p, false, per_feature != 0}).workspace_bytes();
}
