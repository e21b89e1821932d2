// gather_batch on the CPU. Work is cut into output rows; a row is made in source order, in segments
// that stay in L1: deinterleave (pixel-ordered input only), normalise with removal, then store
// reversed, interleaved or converted as the output asks. Plane-ordered float32 rows that are not
// flipped skip the last step. RGB pixels that stay pixels have a way of their own, rgb_rows.h.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "common/augment.h"
#include "common/dtype.h"
#include "common/gather_batch_check.h"
#include "cpu/rgb_rows.h"
#include "cpu/support/parallel.h"
#include "cpu/support/simd.h"

namespace {

constexpr int64_t kSegment = 256;  // columns per segment: its buffers take about 6 KB
constexpr int64_t kTaskElements =
    65536;  // output elements per task, about: large enough to hide scheduling

struct Batch {
  const uint8_t* images;
  const uint8_t* codes;
  const void* imputed;
  const float *scale, *bias, *fill, *pad_value;  // [c]
  rf_dtype imputed_dtype;
  rf_layout layout, out_layout;
  int64_t c, h, w, code_channels, out_h, out_w;
  int keep;
};

// What a row needs to know about its sample.
struct Row {
  int64_t image;  // sample in the dataset
  int64_t y, x;   // source row, and source column of the row's first pixel (before the flip)
  bool flip;
  int rate_index;
};

// f(i) for i in [0, count), kLanes at a time so that the compiler makes vectors of them. The last
// block overlaps the one before instead of leaving a scalar remainder, which would cost more than
// the row where rows have 32 pixels: so f must write the same when it runs twice.
constexpr int kLanes = 16;
template <typename F>
inline void for_lanes(int64_t count, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) f(i + lane);
  }
  if (i < count && count >= kLanes) {
    i = count - kLanes;
    for (int lane = 0; lane < kLanes; ++lane) f(i + lane);
  } else {
    for (; i < count; ++i) f(i);
  }
}

// value[i] = removed ? substitute : pixel * scale + bias.
// Integers are widened first so that all lanes agree.
void normalise(const uint8_t* __restrict pixel, int64_t count, float scale, float bias,
               float* __restrict value) {
  for_lanes(count, [=](int64_t i) { value[i] = static_cast<float>(pixel[i]) * scale + bias; });
}

void normalise_fill(const uint8_t* __restrict pixel, const uint8_t* __restrict codes,
                    int rate_index, int keep, float fill, int64_t count, float scale, float bias,
                    float* __restrict value) {
  constexpr int64_t kStep = 8;
  using Floats = rf::vector_t<float, 4 * kStep>;
  const auto run = [=](int64_t i) __attribute__((always_inline)) {
    const Floats kept = __builtin_convertvector(rf::load_bytes(pixel + i), Floats) * scale + bias;
    const rf::Ints stays = (rf::load_bytes(codes + i) > rate_index) ^ -keep;
    rf::store_as(value + i, stays ? kept : Floats{} + fill);
  };
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) run(i);
  if (i < count && count >= kStep) return run(count - kStep);
  for (; i < count; ++i) {
    const bool removed = (static_cast<int>(codes[i]) <= rate_index) ^ (keep != 0);
    value[i] = removed ? fill : static_cast<float>(pixel[i]) * scale + bias;
  }
}

template <typename T>
void normalise_imputed(const uint8_t* __restrict pixel, const uint8_t* __restrict codes,
                       int rate_index, int keep, const T* __restrict imputed, int64_t count,
                       float scale, float bias, float* __restrict value) {
  for_lanes(count, [=](int64_t i) {
    const float kept = static_cast<float>(pixel[i]);
    const float other = rf::load(imputed[i]);
    const int removed = (static_cast<int>(codes[i]) <= rate_index) ^ keep;
    value[i] = (removed ? other : kept) * scale + bias;
  });
}

// Pointer to `count` consecutive values of one channel from column x of a row; pixel-ordered rows
// are copied into `buffer` first.
template <typename T>
const T* channel_row(const T* data, const Batch& batch, int64_t image, int64_t channel, int64_t y,
                     int64_t x, int64_t count, T* buffer) {
  if (batch.layout == RF_NCHW)
    return data + ((image * batch.c + channel) * batch.h + y) * batch.w + x;
  const T* first = data + ((image * batch.h + y) * batch.w + x) * batch.c + channel;
  if (batch.c == 3) {
    for (int64_t i = 0; i < count; ++i) buffer[i] = first[3 * i];
  } else {
    for (int64_t i = 0; i < count; ++i) buffer[i] = first[batch.c * i];
  }
  return buffer;
}

// Normalised values of one channel for columns [x, x + count) of the source, all inside the image.
void channel_values(const Batch& batch, const Row& row, int64_t channel, int64_t x, int64_t count,
                    float* value) {
  uint8_t bytes[kSegment];
  const uint8_t* pixel =
      channel_row(batch.images, batch, row.image, channel, row.y, x, count, bytes);
  const float scale = batch.scale[channel], bias = batch.bias[channel];
  if (batch.codes == nullptr) return normalise(pixel, count, scale, bias, value);
  const int64_t plane = row.image * batch.code_channels + (batch.code_channels > 1 ? channel : 0);
  const uint8_t* codes = batch.codes + (plane * batch.h + row.y) * batch.w + x;
  if (batch.imputed == nullptr) {
    normalise_fill(pixel, codes, row.rate_index, batch.keep, batch.fill[channel], count, scale,
                   bias, value);
  } else if (batch.imputed_dtype == RF_UINT8) {
    uint8_t buffer[kSegment];
    const uint8_t* imputed = channel_row(static_cast<const uint8_t*>(batch.imputed), batch,
                                         row.image, channel, row.y, x, count, buffer);
    normalise_imputed(pixel, codes, row.rate_index, batch.keep, imputed, count, scale, bias, value);
  } else {
    rf::half_t buffer[kSegment];
    const rf::half_t* imputed = channel_row(static_cast<const rf::half_t*>(batch.imputed), batch,
                                            row.image, channel, row.y, x, count, buffer);
    normalise_imputed(pixel, codes, row.rate_index, batch.keep, imputed, count, scale, bias, value);
  }
}

// The same for columns that may lie outside the image, on a row that may.
void padded_values(const Batch& batch, const Row& row, int64_t channel, int64_t x, int64_t count,
                   float* value) {
  const bool inside = row.y >= 0 && row.y < batch.h;
  const int64_t first = inside ? std::clamp<int64_t>(-x, 0, count) : count;
  const int64_t last = inside ? std::clamp<int64_t>(batch.w - x, first, count) : count;
  std::fill(value, value + first, batch.pad_value[channel]);
  if (last > first) channel_values(batch, row, channel, x + first, last - first, value + first);
  std::fill(value + last, value + count, batch.pad_value[channel]);
}

// out[i * stride] = value[i], or value in reverse.
template <typename T>
void store_strided(const float* __restrict value, int64_t count, bool flip, T* __restrict out,
                   int64_t stride) {
  const float* last = value + count - 1;
  if (stride == 1 && flip) {
    for_lanes(count, [=](int64_t i) { out[i] = rf::store<T>(last[-i]); });
  } else if (stride == 1) {
    for_lanes(count, [=](int64_t i) { out[i] = rf::store<T>(value[i]); });
  } else {
    for (int64_t i = 0; i < count; ++i) out[i * stride] = rf::store<T>(flip ? last[-i] : value[i]);
  }
}

template <typename T>
void store_rgb(const float (*value)[kSegment], int64_t count, bool flip, T* out) {
  const float *r = value[0], *g = value[1], *b = value[2];
  if (flip) {
    for (int64_t i = 0; i < count; ++i) {
      out[3 * i] = rf::store<T>(r[count - 1 - i]);
      out[3 * i + 1] = rf::store<T>(g[count - 1 - i]);
      out[3 * i + 2] = rf::store<T>(b[count - 1 - i]);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      out[3 * i] = rf::store<T>(r[i]);
      out[3 * i + 1] = rf::store<T>(g[i]);
      out[3 * i + 2] = rf::store<T>(b[i]);
    }
  }
}

// One output row: out points at sample s, `out_y` is the row in it.
template <typename T>
void make_row(const Batch& batch, const Row& row, int64_t out_y, T* out) {
  const int64_t plane = batch.out_h * batch.out_w;
  for (int64_t t = 0; t < batch.out_w; t += kSegment) {
    const int64_t count = std::min(kSegment, batch.out_w - t);
    const int64_t out_x = row.flip ? batch.out_w - t - count : t;
    if (batch.out_layout == RF_NHWC && batch.c == 3) {
      float value[3][kSegment];
      for (int64_t channel = 0; channel < 3; ++channel) {
        padded_values(batch, row, channel, row.x + t, count, value[channel]);
      }
      store_rgb(value, count, row.flip, out + (out_y * batch.out_w + out_x) * 3);
      continue;
    }
    for (int64_t channel = 0; channel < batch.c; ++channel) {
      const bool planes = batch.out_layout == RF_NCHW;
      T* target = planes ? out + channel * plane + out_y * batch.out_w + out_x
                         : out + (out_y * batch.out_w + out_x) * batch.c + channel;
      if constexpr (std::is_same_v<T, float>) {
        if (planes && !row.flip) {
          padded_values(batch, row, channel, row.x + t, count, target);
          continue;
        }
      }
      float value[kSegment];
      padded_values(batch, row, channel, row.x + t, count, value);
      store_strided(value, count, row.flip, target, planes ? 1 : batch.c);
    }
  }
}

// Whether RgbRows can make the rows of this batch.
bool stays_rgb(const Batch& batch, rf_dtype out_dtype) {
  return batch.layout == RF_NHWC && batch.out_layout == RF_NHWC && batch.c == 3 &&
         out_dtype == RF_FLOAT32 && (batch.codes == nullptr || batch.code_channels == 1);
}

// One output row of RGB pixels: false if too little of it lies inside the image.
bool make_rgb_row(const Batch& batch, const rf::RgbRows& rgb, const Row& row, float* out) {
  const bool inside = row.y >= 0 && row.y < batch.h;
  const int64_t first = inside ? std::clamp<int64_t>(-row.x, 0, batch.out_w) : batch.out_w;
  const int64_t last = inside ? std::clamp<int64_t>(batch.w - row.x, first, batch.out_w) : first;
  const int64_t count = last - first, padded = row.flip ? batch.out_w - last : first;
  if (count > 0 && count < rf::RgbRows::kPixels) return false;
  if (count > 0) {
    const int64_t pixel = (row.image * batch.h + row.y) * batch.w + row.x + first;
    const auto run = [&](const auto* imputed) {
      rgb.run(batch.images + 3 * pixel, batch.codes ? batch.codes + pixel : nullptr,
              imputed ? imputed + 3 * pixel : nullptr, count, row.flip, out + 3 * padded);
    };
    batch.imputed_dtype == RF_FLOAT16 ? run(static_cast<const rf::half_t*>(batch.imputed))
                                      : run(static_cast<const uint8_t*>(batch.imputed));
  }
  const auto pad = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::copy_n(batch.pad_value, 3, out + 3 * i);
  };
  pad(0, padded);
  pad(padded + count, batch.out_w);
  return true;
}

}  // namespace

extern "C" rf_status rf_gather_batch(const uint8_t* images, rf_layout layout, int64_t n, int64_t c,
                                     int64_t h, int64_t w, const int64_t* given_index,
                                     const int64_t* ids, int64_t b, const uint8_t* codes,
                                     int64_t code_channels, int rate_index, const int64_t* rates,
                                     int keep, const void* imputed, rf_dtype imputed_dtype,
                                     const float* table, int64_t pad, int64_t out_h, int64_t out_w,
                                     int augment_crop, int augment_flip, uint64_t seed,
                                     uint64_t epoch, void* out, rf_dtype out_dtype,
                                     rf_layout out_layout, rf_stream) {
  const rf_status status = rf::check_gather_batch(n, c, h, w, b, codes, code_channels, imputed,
                                                  imputed_dtype, pad, out_h, out_w, out_dtype);
  if (status != RF_OK || b == 0) return status;
  if (const rf_status bad = rf::check_not_null("gather_batch", {images, given_index, table, out}))
    return bad;
  // Another thread may write to the index meanwhile: what is checked must be what is used.
  const std::vector<int64_t> index(given_index, given_index + b);
  for (int64_t i = 0; i < b; ++i) {
    if (index[i] < 0 || index[i] >= n) {
      return rf::fail(RF_INVALID_ARGUMENT, "index[%lld] must be in [0, %lld), got %lld",
                      static_cast<long long>(i), static_cast<long long>(n),
                      static_cast<long long>(index[i]));
    }
  }
  const Batch batch = {
      images,   codes,      imputed, table, table + c, table + 2 * c, table + 3 * c, imputed_dtype,
      layout,   out_layout, c,       h,     w,         code_channels, out_h,         out_w,
      keep != 0};
  const int64_t range_y = h + 2 * pad - out_h, range_x = w + 2 * pad - out_w;
  const int64_t grain = std::max<int64_t>(1, kTaskElements / (out_w * c));
  std::optional<rf::RgbRows> rgb;
  if (stays_rgb(batch, out_dtype))
    rgb.emplace(table, table + c, table + 2 * c, rate_index, keep != 0);
  rf::dispatch_float(out_dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      rf::parallel_for(b * out_h, grain, [&](int64_t begin, int64_t end, int) {
        std::optional<rf::RgbRows> pixels = rgb;  // a copy: samples may have rates of their own
        int rate = rate_index;
        rf::Placement place = {};
        int64_t sample = -1;
        for (int64_t r = begin; r < end; ++r) {
          if (r / out_h != sample) {
            sample = r / out_h;
            if (rates != nullptr) {
              rate = static_cast<int>(rates[sample]);
              if (pixels) pixels->set_rate_index(rate);
            }
            const int64_t id = ids != nullptr ? ids[sample] : index[sample];
            place = rf::place_crop(seed, epoch, id, range_y, range_x, pad, augment_crop != 0,
                                   augment_flip != 0);
          }
          const int64_t out_y = r % out_h;
          const Row row = {index[sample], place.y + out_y, place.x, place.flip, rate};
          T* const target = static_cast<T*>(out) + sample * c * out_h * out_w;
          if constexpr (std::is_same_v<T, float>) {
            if (pixels && make_rgb_row(batch, *pixels, row, target + 3 * out_y * out_w)) continue;
          }
          make_row(batch, row, out_y, target);
        }
      });
    }
  });
  return RF_OK;
}
