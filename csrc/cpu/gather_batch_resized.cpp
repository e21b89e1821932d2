// gather_batch_resized on the CPU. Work is cut into output rows. A row first mixes the source rows
// that it needs, level by level with removal, into one row of floats per channel; then each pixel
// mixes its columns of that. The columns' taps are made once per sample.
#include <algorithm>
#include <vector>

#include "common/dtype.h"
#include "common/gather_batch_check.h"
#include "common/resized_crop.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int64_t kTaskElements = 65536;  // output elements per task, about

struct Batch {
  const uint8_t* images;
  const uint8_t* codes;
  const void* imputed;
  const float *scale, *bias, *fill;  // [c]
  rf_dtype imputed_dtype;
  rf_layout layout, out_layout;
  int64_t c, h, w, code_channels, out_h, out_w;
  bool keep;
};

// Which columns make each pixel of a row.
struct Columns {
  std::vector<int> first, count;
  std::vector<float> weight;
  int most = 0;  // columns of a pixel; weight is [out_w, most]

  void make(int in, int out) {
    most = 2 * ((in + out - 1) / out) + 1;
    first.resize(out);
    count.resize(out);
    weight.resize(static_cast<size_t>(out) * most);
    for (int i = 0; i < out; ++i) {
      const rf::Taps taps(i, in, out);
      first[i] = taps.first;
      count[i] = taps.count;
      for (int k = 0; k < taps.count; ++k) weight[i * most + k] = taps.weight(k);
    }
  }
};

// value[x] += weight * level of column x; kStep: distance of neighbours, 0: `step`.
template <int kStep, typename T>
void add_row(const uint8_t* __restrict pixel, const uint8_t* __restrict codes,
             const T* __restrict imputed, float fill, int rate, bool keep, int64_t step, int count,
             float weight, float* __restrict value) {
  if (kStep != 0) step = kStep;
  if (codes == nullptr) {
    for (int x = 0; x < count; ++x) value[x] += weight * static_cast<float>(pixel[x * step]);
  } else if (imputed == nullptr) {
    for (int x = 0; x < count; ++x) {
      const bool removed = (static_cast<int>(codes[x]) <= rate) != keep;
      value[x] += weight * (removed ? fill : static_cast<float>(pixel[x * step]));
    }
  } else {
    for (int x = 0; x < count; ++x) {
      const bool removed = (static_cast<int>(codes[x]) <= rate) != keep;
      value[x] +=
          weight * (removed ? rf::load(imputed[x * step]) : static_cast<float>(pixel[x * step]));
    }
  }
}

template <typename T>
void add_row_of(const Batch& batch, int64_t image, int64_t channel, int64_t y, int64_t x, int rate,
                int count, float weight, float* value) {
  const bool planes = batch.layout == RF_NCHW;
  const int64_t at = planes ? ((image * batch.c + channel) * batch.h + y) * batch.w + x
                            : ((image * batch.h + y) * batch.w + x) * batch.c + channel;
  const int64_t plane = image * batch.code_channels + (batch.code_channels > 1 ? channel : 0);
  const uint8_t* codes = batch.codes ? batch.codes + (plane * batch.h + y) * batch.w + x : nullptr;
  const T* imputed = batch.imputed ? static_cast<const T*>(batch.imputed) + at : nullptr;
  const int64_t step = planes ? 1 : batch.c;
  const auto add = step == 1 ? add_row<1, T> : step == 3 ? add_row<3, T> : add_row<0, T>;
  add(batch.images + at, codes, imputed, batch.fill[channel], rate, batch.keep, step, count, weight,
      value);
}

// Output row `out_y` of a sample whose output starts at `out`.
template <typename T>
void make_row(const Batch& batch, const rf::Box& box, const Columns& columns, int64_t image,
              int rate, int64_t out_y, float* mixed, T* out) {
  const rf::Taps rows(static_cast<int>(out_y), box.h, static_cast<int>(batch.out_h));
  const bool planes = batch.out_layout == RF_NCHW;
  for (int64_t channel = 0; channel < batch.c; ++channel) {
    std::fill(mixed, mixed + box.w, 0.0f);
    for (int k = 0; k < rows.count; ++k) {
      const int64_t y = box.y + rows.first + k;
      if (batch.imputed_dtype == RF_UINT8) {
        add_row_of<uint8_t>(batch, image, channel, y, box.x, rate, box.w, rows.weight(k), mixed);
      } else {
        add_row_of<rf::half_t>(batch, image, channel, y, box.x, rate, box.w, rows.weight(k), mixed);
      }
    }
    const float scale = batch.scale[channel], bias = batch.bias[channel];
    T* to = planes ? out + (channel * batch.out_h + out_y) * batch.out_w
                   : out + out_y * batch.out_w * batch.c + channel;
    const int64_t step = planes ? 1 : batch.c;
    for (int64_t i = 0; i < batch.out_w; ++i) {
      const float* from = mixed + columns.first[i];
      const float* weight = columns.weight.data() + i * columns.most;
      float level = 0.0f;
      for (int k = 0; k < columns.count[i]; ++k) level += weight[k] * from[k];
      to[(box.flip ? batch.out_w - 1 - i : i) * step] = rf::store<T>(level * scale + bias);
    }
  }
}

}  // namespace

extern "C" rf_status rf_gather_batch_resized(
    const uint8_t* images, rf_layout layout, int64_t n, int64_t c, int64_t h, int64_t w,
    const int64_t* given_index, const int64_t* ids, int64_t b, const uint8_t* codes,
    int64_t code_channels, int rate_index, const int64_t* rates, int keep, const void* imputed,
    rf_dtype imputed_dtype, const float* table, int64_t out_h, int64_t out_w, double scale_low,
    double scale_high, double ratio_low, double ratio_high, double log_ratio, int augment_flip,
    uint64_t seed, uint64_t epoch, void* out, rf_dtype out_dtype, rf_layout out_layout, rf_stream) {
  const rf::BoxRange range = {scale_low, scale_high, ratio_low, ratio_high, log_ratio};
  if (const rf_status bad =
          rf::check_gather_batch_resized(n, c, h, w, b, codes, code_channels, imputed,
                                         imputed_dtype, out_h, out_w, out_dtype, epoch, range))
    return bad;
  if (b == 0) return RF_OK;
  if (const rf_status bad =
          rf::check_not_null("gather_batch_resized", {images, given_index, table, out}))
    return bad;
  // Another thread may write to the index meanwhile: what is checked must be what is used.
  const std::vector<int64_t> index(given_index, given_index + b);
  if (const rf_status bad = rf::check_gather_index(index.data(), b, n)) return bad;
  const Batch batch = {images,        codes,  imputed,    table,    table + c, table + 2 * c,
                       imputed_dtype, layout, out_layout, c,        h,         w,
                       code_channels, out_h,  out_w,      keep != 0};
  const int64_t grain = std::max<int64_t>(1, kTaskElements / (out_w * c));
  rf::dispatch_float(out_dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      rf::parallel_for(b * out_h, grain, [&](int64_t begin, int64_t end, int) {
        std::vector<float> mixed(static_cast<size_t>(w));
        Columns columns;
        rf::Box box = {};
        int rate = rate_index;
        int64_t sample = -1;
        for (int64_t r = begin; r < end; ++r) {
          if (r / out_h != sample) {
            sample = r / out_h;
            if (rates != nullptr) rate = static_cast<int>(rates[sample]);
            box = rf::place_box(seed, epoch, ids != nullptr ? ids[sample] : index[sample],
                                static_cast<int>(h), static_cast<int>(w), range, augment_flip != 0);
            columns.make(box.w, static_cast<int>(out_w));
          }
          make_row(batch, box, columns, index[sample], rate, r % out_h, mixed.data(),
                   static_cast<T*>(out) + sample * c * out_h * out_w);
        }
      });
    }
  });
  return RF_OK;
}
