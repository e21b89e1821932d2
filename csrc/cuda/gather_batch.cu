// gather_batch on CUDA. A block makes kBlockPixels output pixels of one sample, all channels;
// thread t takes pixels t, t + kThreads, ... so that a warp reads neighbouring bytes and writes
// neighbouring values. Per pixel and channel: 1 byte of image, (1 byte of code once,) 2 or 4 bytes
// written. No shared memory but the sample's placement, which one thread draws.
#include "common/augment.h"
#include "common/dtype.h"
#include "common/gather_batch_check.h"
#include "cuda/support/launch.h"

namespace {

constexpr int kThreads = 256;
constexpr int kPixelsPerThread =
    4;  // independent loads in flight; 1024 pixels = one 32x32 image per block
constexpr int kBlockPixels = kThreads * kPixelsPerThread;

struct Batch {
  const uint8_t* images;  // [n, c, h, w] or [n, h, w, c]
  const int64_t* index;   // [b]
  const int64_t* ids;     // [b] or null
  const uint8_t* codes;   // [n, code_channels, h, w] or null
  const void* imputed;    // like images, or null
  const float* table;     // [4, c]
  int64_t n, c, h, w, code_channels, out_h, out_w, pad;
  int64_t blocks_per_sample;
  uint64_t seed, epoch;
  int rate_index, keep;
  bool nhwc, out_nhwc, imputed_bytes, random_crop, random_flip;
};

template <typename T>
__global__ void gather_batch_kernel(Batch batch,
                                    T* out) {  // out [b, c, out_h, out_w] or [b, out_h, out_w, c]
  RF_SHARED(rf::Placement, shared_place, [1]);
  const int64_t sample = blockIdx.x / batch.blocks_per_sample;
  const int64_t first = (blockIdx.x % batch.blocks_per_sample) * kBlockPixels;
  const int64_t image = batch.index[sample];
  const bool known = image >= 0 && image < batch.n;
  if (threadIdx.x == 0) {
    const int64_t id = batch.ids != nullptr ? batch.ids[sample] : image;
    shared_place[0] = rf::place_crop(
        batch.seed, batch.epoch, id, batch.h + 2 * batch.pad - batch.out_h,
        batch.w + 2 * batch.pad - batch.out_w, batch.pad, batch.random_crop, batch.random_flip);
  }
  __syncthreads();
  const rf::Placement place = shared_place[0];
  const int64_t pixels = batch.out_h * batch.out_w, plane = batch.h * batch.w;
  const float *scale = batch.table, *bias = scale + batch.c, *fill = bias + batch.c,
              *pad_value = fill + batch.c;

#pragma unroll
  for (int k = 0; k < kPixelsPerThread; ++k) {
    const int64_t p = first + k * kThreads + threadIdx.x;
    if (p >= pixels) break;
    const int64_t out_y = p / batch.out_w, out_x = p - out_y * batch.out_w;
    const int64_t y = place.y + out_y, x = place.x + (place.flip ? batch.out_w - 1 - out_x : out_x);
    const bool inside = known && y >= 0 && y < batch.h && x >= 0 && x < batch.w;
    const int64_t source = y * batch.w + x;
    for (int64_t channel = 0; channel < batch.c; ++channel) {
      float value = known ? pad_value[channel] : rf::bits_float(0x7fc00000u);
      if (inside) {
        const int64_t at = batch.nhwc ? (image * plane + source) * batch.c + channel
                                      : (image * batch.c + channel) * plane + source;
        bool removed = false;
        if (batch.codes != nullptr) {
          const int64_t code_plane =
              image * batch.code_channels + (batch.code_channels > 1 ? channel : 0);
          removed =
              (batch.codes[code_plane * plane + source] <= batch.rate_index) != (batch.keep != 0);
        }
        if (removed && batch.imputed == nullptr) {
          value = fill[channel];
        } else {
          float level;
          if (!removed) {
            level = static_cast<float>(batch.images[at]);
          } else if (batch.imputed_bytes) {
            level = static_cast<float>(static_cast<const uint8_t*>(batch.imputed)[at]);
          } else {
            level = rf::load(static_cast<const rf::half_t*>(batch.imputed)[at]);
          }
          value = level * scale[channel] + bias[channel];
        }
      }
      const int64_t to = batch.out_nhwc ? (sample * pixels + p) * batch.c + channel
                                        : (sample * batch.c + channel) * pixels + p;
      out[to] = rf::store<T>(value);
    }
  }
}

}  // namespace

extern "C" rf_status rf_gather_batch(const uint8_t* images, rf_layout layout, int64_t n, int64_t c,
                                     int64_t h, int64_t w, const int64_t* index, const int64_t* ids,
                                     int64_t b, const uint8_t* codes, int64_t code_channels,
                                     int rate_index, int keep, const void* imputed,
                                     rf_dtype imputed_dtype, const float* table, int64_t pad,
                                     int64_t out_h, int64_t out_w, int augment_crop,
                                     int augment_flip, uint64_t seed, uint64_t epoch, void* out,
                                     rf_dtype out_dtype, rf_layout out_layout, rf_stream stream) {
  rf_status status = rf::check_gather_batch(n, c, h, w, b, codes, code_channels, imputed,
                                            imputed_dtype, pad, out_h, out_w, out_dtype);
  if (status != RF_OK || b == 0) return status;
  const int64_t blocks_per_sample = (out_h * out_w + kBlockPixels - 1) / kBlockPixels;
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
                       n,
                       c,
                       h,
                       w,
                       code_channels,
                       out_h,
                       out_w,
                       pad,
                       blocks_per_sample,
                       seed,
                       epoch,
                       rate_index,
                       keep,
                       layout == RF_NHWC,
                       out_layout == RF_NHWC,
                       imputed_dtype == RF_UINT8,
                       augment_crop != 0,
                       augment_flip != 0};
  rf::dispatch_float(out_dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      status =
          rf::launch(gather_batch_kernel<T>, dim3(static_cast<unsigned>(b * blocks_per_sample)),
                     dim3(kThreads), 0, stream, batch, static_cast<T*>(out));
    }
  });
  return status;
}
