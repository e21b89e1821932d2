// gather_batch on CUDA. A block makes a part of one sample. Where the output is whole fours and
// positions fit 32 bits, a thread makes four neighbouring pixels of every channel; planes are
// stored in fours at once, two to four channels side by side through shared memory. Otherwise
// pixel by pixel. Per pixel and channel: 1 byte of image, (1 byte of code once,) 2 or 4 bytes
// written. One thread draws the sample's placement.
#include "common/augment.h"
#include "common/dtype.h"
#include "common/gather_batch_check.h"
#include "cuda/support/launch.h"
#include "cuda/support/vectors.h"

namespace {

constexpr int kThreads = 256;
constexpr int kPixelsPerThread =
    4;  // independent loads in flight; 1024 pixels = one 32x32 image per block
constexpr int kBlockPixels = kThreads * kPixelsPerThread;
constexpr int64_t kMaxSideBySide = 4;  // channels; more go pixel by pixel

struct Batch {
  const uint8_t* images;  // [n, c, h, w] or [n, h, w, c]
  const int64_t* index;   // [b]
  const int64_t* ids;     // [b] or null
  const uint8_t* codes;   // [n, code_channels, h, w] or null
  const void* imputed;    // like images, or null
  const float* table;     // [4, c]
  const int64_t* rates;   // [b] or null
  int64_t n, c, h, w, code_channels, out_h, out_w, pad;
  int64_t blocks_per_sample;
  uint64_t seed, epoch;
  int rate_index, keep;
  bool nhwc, out_nhwc, imputed_bytes, random_crop, random_flip;
};

// Where the sample of this block is cropped; known to all threads after it.
__device__ __forceinline__ rf::Placement place_sample(const Batch& batch, rf::Placement* shared,
                                                      int64_t sample, int64_t image) {
  if (threadIdx.x == 0) {
    const int64_t id = batch.ids != nullptr ? batch.ids[sample] : image;
    *shared = rf::place_crop(batch.seed, batch.epoch, id, batch.h + 2 * batch.pad - batch.out_h,
                             batch.w + 2 * batch.pad - batch.out_w, batch.pad, batch.random_crop,
                             batch.random_flip);
  }
  __syncthreads();
  return *shared;
}

// What the threads of a block share, with positions in 32 bits.
struct Source {
  const uint8_t *image, *codes;
  const uint8_t* imputed_bytes;
  const rf::half_t* imputed_halves;
  const float *scale, *bias, *fill, *pad_value;
  int h, w, plane, c, code_step,
      rate_index;  // code_step: between the codes of channels
  bool known, nhwc, keep;

  __device__ Source(const Batch& b, int64_t sample, int64_t sample_image)
      : scale(b.table),
        bias(b.table + b.c),
        fill(b.table + 2 * b.c),
        pad_value(b.table + 3 * b.c),
        h(static_cast<int>(b.h)),
        w(static_cast<int>(b.w)),
        plane(h * w),
        c(static_cast<int>(b.c)),
        code_step(b.code_channels > 1 ? plane : 0),
        rate_index(static_cast<int>(b.rates ? b.rates[sample] : b.rate_index)),
        known(sample_image >= 0 && sample_image < b.n),
        nhwc(b.nhwc),
        keep(b.keep != 0) {
    const int64_t first = (known ? sample_image : 0) * c * plane;
    image = b.images + first;
    codes = b.codes ? b.codes + (known ? sample_image : 0) * b.code_channels * plane : nullptr;
    imputed_bytes =
        b.imputed && b.imputed_bytes ? static_cast<const uint8_t*>(b.imputed) + first : nullptr;
    imputed_halves =
        b.imputed && !b.imputed_bytes ? static_cast<const rf::half_t*>(b.imputed) + first : nullptr;
  }

  __device__ bool inside(int y, int x) const { return known && y >= 0 && y < h && x >= 0 && x < w; }
  __device__ bool removed(int channel, int at) const {
    return codes && (codes[channel * code_step + at] <= rate_index) != keep;
  }
  __device__ float outside(int channel) const {
    return known ? pad_value[channel] : rf::bits_float(0x7fc00000u);
  }
};

// Four neighbouring pixels of the output: where they come from. Pixels of the border and of samples
// that do not exist point at the image's first one, so that loads need no branches.
struct FourPixels {
  int at[4];
  bool inside[4], removed[4];

  __device__ __forceinline__ FourPixels(const Source& source, const rf::Placement& place, int p,
                                        int out_w) {
    int out_y = p / out_w, out_x = p - out_y * out_w;
    const int step = place.flip ? -1 : 1, left = static_cast<int>(place.x),
              first_x = place.flip ? left + out_w - 1 : left;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int y = static_cast<int>(place.y) + out_y, x = first_x + step * out_x;
      inside[k] = source.inside(y, x);
      at[k] = inside[k] ? y * source.w + x : 0;
      removed[k] = source.removed(0, at[k]);
      if (++out_x == out_w) out_x = 0, ++out_y;
    }
  }

  // Their values in one channel; channels one after the other, as their codes may differ.
  template <typename T>
  __device__ __forceinline__ void values(const Source& source, int channel, T out[4]) {
    if (source.code_step && channel > 0) {
#pragma unroll
      for (int k = 0; k < 4; ++k) removed[k] = source.removed(channel, at[k]);
    }
    const bool imputed = source.imputed_bytes || source.imputed_halves;
    const float scale = source.scale[channel], bias = source.bias[channel],
                fill = source.fill[channel], outside = source.outside(channel);
    const int step = source.nhwc ? source.c : 1,
              first = source.nhwc ? channel : channel * source.plane;
    const uint8_t* image = source.image + first;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float level = static_cast<float>(image[at[k] * step]);
      if (imputed) {
        const int offset = first + at[k] * step;
        const float other = source.imputed_bytes ? static_cast<float>(source.imputed_bytes[offset])
                                                 : rf::load(source.imputed_halves[offset]);
        level = removed[k] ? other : level;
      }
      float value = level * scale + bias;
      value = removed[k] && !imputed ? fill : value;
      out[k] = rf::store<T>(inside[k] ? value : outside);
    }
  }
};

// A thread per four pixels of the output, in planes.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    gather_planes_kernel(const __grid_constant__ Batch batch, T* __restrict__ out,
                         uint32_t blocks_per_sample) {  // out [b, c, out_h, out_w]
  RF_SHARED(rf::Placement, shared_place, [1]);
  const uint32_t sample = blockIdx.x / blocks_per_sample;
  const int64_t image = batch.index[sample];
  const rf::Placement place = place_sample(batch, shared_place, sample, image);
  const int out_w = static_cast<int>(batch.out_w), pixels = static_cast<int>(batch.out_h) * out_w;
  const int p =
      static_cast<int>(4 * ((blockIdx.x - sample * blocks_per_sample) * kThreads + threadIdx.x));
  if (p >= pixels) return;
  const Source source(batch, sample, image);
  FourPixels from(source, place, p, out_w);
  T* to = out + static_cast<int64_t>(sample) * source.c * pixels + p;
  for (int channel = 0; channel < source.c; ++channel) {
    rf::Four<T> four;
    from.values(source, channel, four.v);
    *reinterpret_cast<rf::Four<T>*>(to) = four;
    to += pixels;
  }
}

// A thread per four pixels, whose kChannels channels are side by side. They go out through shared
// memory, so that neighbouring threads store neighbouring fours.
template <typename T, int kChannels>
__global__ void __launch_bounds__(kThreads)
    gather_pixels_kernel(const __grid_constant__ Batch batch, T* __restrict__ out,
                         uint32_t blocks_per_sample) {  // out [b, out_h, out_w, kChannels]
  RF_SHARED(rf::Placement, shared_place, [1]);
  RF_SHARED(rf::Four<T>, staged, [kChannels * kThreads]);
  const uint32_t sample = blockIdx.x / blocks_per_sample;
  const int64_t image = batch.index[sample];
  const rf::Placement place = place_sample(batch, shared_place, sample, image);
  const int out_w = static_cast<int>(batch.out_w), pixels = static_cast<int>(batch.out_h) * out_w;
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x - sample * blocks_per_sample) * 4 * kThreads;
  const int p = first + 4 * thread;
  if (p < pixels) {
    const Source source(batch, sample, image);
    FourPixels from(source, place, p, out_w);
    T values[kChannels][4];
#pragma unroll
    for (int channel = 0; channel < kChannels; ++channel)
      from.values(source, channel, values[channel]);
#pragma unroll
    for (int j = 0; j < kChannels; ++j) {
      rf::Four<T> four;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        four.v[k] = values[(4 * j + k) % kChannels][(4 * j + k) / kChannels];
      staged[kChannels * thread + j] = four;
    }
  }
  __syncthreads();
  const int left = (pixels - first) / 4 * kChannels;
  rf::Four<T>* to = reinterpret_cast<rf::Four<T>*>(
      out + (static_cast<int64_t>(sample) * pixels + first) * kChannels);
#pragma unroll
  for (int j = 0; j < kChannels; ++j) {
    const int i = j * kThreads + thread;
    if (i < left) to[i] = staged[i];
  }
}

// Any size and alignment: pixel by pixel.
template <typename T>
__global__ void gather_batch_kernel(Batch batch,
                                    T* out) {  // out [b, c, out_h, out_w] or [b, out_h, out_w, c]
  RF_SHARED(rf::Placement, shared_place, [1]);
  const int64_t sample = blockIdx.x / batch.blocks_per_sample;
  const int64_t first = (blockIdx.x % batch.blocks_per_sample) * kBlockPixels;
  const int64_t image = batch.index[sample];
  const bool known = image >= 0 && image < batch.n;
  const int64_t rate = batch.rates != nullptr ? batch.rates[sample] : batch.rate_index;
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
          removed = (batch.codes[code_plane * plane + source] <= rate) != (batch.keep != 0);
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
                                     int rate_index, const int64_t* rates, int keep,
                                     const void* imputed, rf_dtype imputed_dtype,
                                     const float* table, int64_t pad, int64_t out_h, int64_t out_w,
                                     int augment_crop, int augment_flip, uint64_t seed,
                                     uint64_t epoch, void* out, rf_dtype out_dtype,
                                     rf_layout out_layout, rf_stream stream) {
  rf_status status = rf::check_gather_batch(n, c, h, w, b, codes, code_channels, imputed,
                                            imputed_dtype, pad, out_h, out_w, out_dtype);
  if (status != RF_OK || b == 0) return status;
  if (const rf_status bad = rf::check_not_null("gather_batch", {images, index, table, out}))
    return bad;
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
                       rates,
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
      const int64_t pixels = out_h * out_w;
      const bool planes = !batch.out_nhwc || c == 1;
      constexpr int64_t kNarrow = int64_t{1} << 30;
      T* typed = static_cast<T*>(out);
      const bool fours = (planes || c <= kMaxSideBySide) && n * h * w > 0 && pixels % 4 == 0 &&
                         rf::is_aligned_for_fours(typed) && pixels * c < kNarrow &&
                         (h + 2 * pad) * (w + 2 * pad) * c < kNarrow;
      if (fours) {
        const int64_t per_sample = (pixels / 4 + kThreads - 1) / kThreads;
        if (b <= INT32_MAX / per_sample) {
          const auto kernel = planes   ? gather_planes_kernel<T>
                              : c == 2 ? gather_pixels_kernel<T, 2>
                              : c == 3 ? gather_pixels_kernel<T, 3>
                                       : gather_pixels_kernel<T, 4>;
          status = rf::launch(kernel, dim3(static_cast<unsigned>(b * per_sample)), dim3(kThreads),
                              0, stream, batch, typed, per_sample);
          return;
        }
      }
      status =
          rf::launch(gather_batch_kernel<T>, dim3(static_cast<unsigned>(b * blocks_per_sample)),
                     dim3(kThreads), 0, stream, batch, typed);
    }
  });
  return status;
}
