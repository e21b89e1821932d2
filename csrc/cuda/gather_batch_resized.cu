// gather_batch_resized on CUDA. A thread makes one output pixel in every channel: it mixes the
// rows of each of its source columns, then those columns, in the order of the CPU kernel. A block
// makes a part of one sample, and one of its threads draws the sample's crop. Per pixel and channel
// 4 bytes of image where the crop is enlarged, more where it shrinks; neighbours share them in L1.
#include "common/dtype.h"
#include "common/gather_batch_check.h"
#include "common/resized_crop.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;

struct Batch {
  const uint8_t* images;  // [n, c, h, w] or [n, h, w, c]
  const int64_t* index;   // [b]
  const int64_t* ids;     // [b] or null
  const uint8_t* codes;   // [n, code_channels, h, w] or null
  const void* imputed;    // like images, or null
  const float* table;     // [3, c]
  const int64_t* rates;   // [b] or null
  int64_t n, c, h, w, code_channels, out_h, out_w, blocks_per_sample;
  uint64_t seed, epoch;
  rf::BoxRange range;
  int rate_index;
  bool keep, nhwc, out_nhwc, imputed_bytes, random_flip;
};

// The level of a pixel of the image, 0..255, after removal.
__device__ __forceinline__ float level_of(const Batch& batch, int64_t image, int64_t channel,
                                          int64_t pixel, int rate) {
  const int64_t plane = batch.h * batch.w;
  const int64_t at = batch.nhwc ? (image * plane + pixel) * batch.c + channel
                                : (image * batch.c + channel) * plane + pixel;
  if (batch.codes != nullptr) {
    const int64_t code_plane =
        image * batch.code_channels + (batch.code_channels > 1 ? channel : 0);
    const bool removed =
        (static_cast<int>(batch.codes[code_plane * plane + pixel]) <= rate) != batch.keep;
    if (removed) {
      if (batch.imputed == nullptr) return batch.table[2 * batch.c + channel];
      if (batch.imputed_bytes)
        return static_cast<float>(static_cast<const uint8_t*>(batch.imputed)[at]);
      return rf::load(static_cast<const rf::half_t*>(batch.imputed)[at]);
    }
  }
  return static_cast<float>(batch.images[at]);
}

template <typename T>
__global__ void __launch_bounds__(kThreads) gather_resized_kernel(
    const __grid_constant__ Batch batch,
    T* __restrict__ out) {  // out [b, c, out_h, out_w] or [b, out_h, out_w, c]
  RF_SHARED(rf::Box, shared_box, [1]);
  const int64_t sample = blockIdx.x / batch.blocks_per_sample;
  const int64_t image = batch.index[sample];
  const bool known = image >= 0 && image < batch.n;
  if (threadIdx.x == 0) {
    const int64_t id = batch.ids != nullptr ? batch.ids[sample] : image;
    shared_box[0] = rf::place_box(batch.seed, batch.epoch, id, static_cast<int>(batch.h),
                                  static_cast<int>(batch.w), batch.range, batch.random_flip);
  }
  __syncthreads();
  const rf::Box box = shared_box[0];
  const int64_t pixels = batch.out_h * batch.out_w;
  const int64_t p = (blockIdx.x % batch.blocks_per_sample) * kThreads + threadIdx.x;
  if (p >= pixels) return;
  const int out_w = static_cast<int>(batch.out_w), out_y = static_cast<int>(p / batch.out_w),
            out_x = static_cast<int>(p - out_y * batch.out_w);
  const int rate =
      static_cast<int>(batch.rates != nullptr ? batch.rates[sample] : batch.rate_index);
  const rf::Taps rows(out_y, box.h, static_cast<int>(batch.out_h));
  const rf::Taps columns(box.flip ? out_w - 1 - out_x : out_x, box.w, out_w);
  const int64_t first = (box.y + rows.first) * batch.w + box.x + columns.first;
  for (int64_t channel = 0; channel < batch.c; ++channel) {
    float value = rf::bits_float(0x7fc00000u);
    if (known) {
      float level = 0.0f;
      for (int i = 0; i < columns.count; ++i) {
        float mixed = 0.0f;
        for (int k = 0; k < rows.count; ++k) {
          mixed += rows.weight(k) * level_of(batch, image, channel, first + k * batch.w + i, rate);
        }
        level += columns.weight(i) * mixed;
      }
      value = level * batch.table[channel] + batch.table[batch.c + channel];
    }
    out[batch.out_nhwc ? (sample * pixels + p) * batch.c + channel
                       : (sample * batch.c + channel) * pixels + p] = rf::store<T>(value);
  }
}

}  // namespace

extern "C" rf_status rf_gather_batch_resized(
    const uint8_t* images, rf_layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
    const int64_t* index, const int64_t* ids, int64_t b, const uint8_t* codes,
    int64_t code_channels, int rate_index, const int64_t* rates, int keep, const void* imputed,
    rf_dtype imputed_dtype, const float* table, int64_t out_h, int64_t out_w, double scale_low,
    double scale_high, double ratio_low, double ratio_high, double log_ratio, int augment_flip,
    uint64_t seed, uint64_t epoch, void* out, rf_dtype out_dtype, rf_layout out_layout,
    rf_stream stream) {
  const rf::BoxRange range = {scale_low, scale_high, ratio_low, ratio_high, log_ratio};
  if (const rf_status bad =
          rf::check_gather_batch_resized(n, c, h, w, b, codes, code_channels, imputed,
                                         imputed_dtype, out_h, out_w, out_dtype, epoch, range))
    return bad;
  if (b == 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("gather_batch_resized", {images, index, table, out}))
    return bad;
  const int64_t blocks_per_sample = (out_h * out_w + kThreads - 1) / kThreads;
  if (b > INT32_MAX / blocks_per_sample) {
    return rf::fail(RF_INVALID_ARGUMENT, "batch of %lld samples is too large for one launch",
                    static_cast<long long>(b));
  }
  const Batch batch = {images,
                       index,
                       ids,
                       codes,
                       imputed,
                       table,
                       rates,
                       n,
                       c,
                       h,
                       w,
                       code_channels,
                       out_h,
                       out_w,
                       blocks_per_sample,
                       seed,
                       epoch,
                       range,
                       rate_index,
                       keep != 0,
                       layout == RF_NHWC,
                       out_layout == RF_NHWC,
                       imputed_dtype == RF_UINT8,
                       augment_flip != 0};
  rf_status status = RF_OK;
  rf::dispatch_float(out_dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      status =
          rf::launch(gather_resized_kernel<T>, dim3(static_cast<unsigned>(b * blocks_per_sample)),
                     dim3(kThreads), 0, stream, batch, static_cast<T*>(out));
    }
  });
  return status;
}
