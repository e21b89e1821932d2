// Fills the removed features of one image, of any dtype.
#pragma once

#include <cstdint>

#include "common/fill.h"

namespace rf {

// Memory of one thread for chunks of replacements and of masks.
struct FillScratch {
  static constexpr int64_t kChunk = 2048;
  alignas(64) unsigned char replacement[kChunk * sizeof(double)];
  alignas(64) uint8_t expanded[kChunk];
};

// x, out: all images. mask: that of image `image` only, p bytes, or c * p if per feature. `sample`
// seeds its noise.
void fill_image(rf_dtype dtype, const ImageLayout& layout, const FillSpec& spec, int64_t image,
                int64_t sample, const void* x, const uint8_t* mask, void* out,
                FillScratch& scratch);

}  // namespace rf
