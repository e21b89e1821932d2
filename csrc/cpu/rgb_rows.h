// Rows of RGB pixels, interleaved in and out: normalised, with removal, mirrored or not, eight
// pixels at a time without taking the channels apart. What a training on a CPU asks of
// gather_batch: images are stored by pixel, and convolutions want channels last.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/dtype.h"
#include "cpu/support/simd.h"

namespace rf {

// The tables of three channels, repeated to fill vectors.
class RgbRows {
 public:
  static constexpr int kPixels = 8;  // of a block; rows must have as many

  RgbRows(const float* scale, const float* bias, const float* fill, int drop, bool keep)
      : drop_(drop), keep_(-static_cast<int32_t>(keep)) {
    for (int k = 0; k < kVectors; ++k) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int channel = (k * kLanes + lane) % 3;
        scale_[k][lane] = scale[channel];
        bias_[k][lane] = bias[channel];
        fill_[k][lane] = fill[channel];
      }
    }
  }

  void set_rate_index(int rate_index) { drop_ = rate_index; }

  // out[0 .. 3 count) from as many pixels; codes and imputed, pixels too (bytes or halves), may be
  // null. Mirrored rows begin with the last pixel.
  template <typename Imputed>
  void run(const uint8_t* pixels, const uint8_t* codes, const Imputed* imputed, int64_t count,
           bool mirrored, float* out) const {
    const auto choose = [&](auto mirror) __attribute__((always_inline)) {
      if (codes == nullptr) {
        run_blocks<mirror(), false, false>(pixels, codes, imputed, count, out);
      } else if (imputed == nullptr) {
        run_blocks<mirror(), true, false>(pixels, codes, imputed, count, out);
      } else {
        run_blocks<mirror(), true, true>(pixels, codes, imputed, count, out);
      }
    };
    mirrored ? choose(std::true_type{}) : choose(std::false_type{});
  }

 private:
  static constexpr int kLanes = 8, kVectors = 3 * kPixels / kLanes;
  using Floats = vector_t<float, 4 * kLanes>;

  template <bool mirror, bool remove, bool impute, typename Imputed>
  void run_blocks(const uint8_t* pixels, const uint8_t* codes, const Imputed* imputed,
                  int64_t count, float* out) const {
    const RgbRows tables = *this;  // stores might change the members, for all that is known
    for (int64_t i = 0; i < count; i += kPixels) {
      const int64_t to = i + kPixels <= count ? i : count - kPixels;  // the last block overlaps
      const int64_t from = mirror ? count - kPixels - to : to;
      tables.run_block<mirror, remove, impute>(pixels + 3 * from, codes + (remove ? from : 0),
                                               imputed + (impute ? 3 * from : 0), out + 3 * to,
                                               std::make_integer_sequence<int, kVectors>{});
    }
  }

  template <bool mirror, bool remove, bool impute, typename Imputed, int... kVector>
  __attribute__((always_inline)) void run_block(const uint8_t* pixels, const uint8_t* codes,
                                                const Imputed* imputed, float* out,
                                                std::integer_sequence<int, kVector...>) const {
    (run_vector<kVector, mirror, remove, impute>(pixels, codes, imputed, out), ...);
  }

  template <int k, bool mirror, bool remove, bool impute, typename Imputed>
  __attribute__((always_inline)) void run_vector(const uint8_t* pixels, const uint8_t* codes,
                                                 const Imputed* imputed, float* out) const {
    using Lanes = std::make_integer_sequence<int, kLanes>;
    constexpr bool kBytes = std::is_same_v<Imputed, uint8_t>;
    Ints pixel = values<k, mirror>(pixels, Lanes{}), stays{};
    if constexpr (remove) stays = (codes_of<k, mirror>(codes, Lanes{}) > drop_) ^ keep_;
    if constexpr (impute && kBytes) pixel = stays ? pixel : values<k, mirror>(imputed, Lanes{});
    Floats value = __builtin_convertvector(pixel, Floats);
    if constexpr (impute && !kBytes) value = stays ? value : halves<k, mirror>(imputed, Lanes{});
    value = value * scale_[k] + bias_[k];
    if constexpr (remove && !impute) value = stays ? value : fill_[k];
    store_as(out + k * kLanes, value);
  }

  // Values k kLanes ... of the 24 that the block becomes. Those of a mirrored one are among the 16
  // from kFirst on.
  template <int k>
  static constexpr int kFirst = (kVectors - 1 - k) * kLanes / 2;
  template <int k, bool mirror, int... lane>
  __attribute__((always_inline)) static Ints values(const uint8_t* block,
                                                    std::integer_sequence<int, lane...>) {
    if constexpr (!mirror) return pick<8, lane...>(block + k * kLanes);
    return pick<16, (mirrored_value(k * kLanes + lane) - kFirst<k>)...>(block + kFirst<k>);
  }
  template <int k, bool mirror, int... lane>
  __attribute__((always_inline)) static Floats halves(const half_t* block,
                                                      std::integer_sequence<int, lane...> lanes) {
    if constexpr (!mirror) return load_halves(block + k * kLanes, lanes);
    return shuffle<(mirrored_value(k * kLanes + lane) - kFirst<k>)...>(
        load_halves(block + kFirst<k>, lanes), load_halves(block + kFirst<k> + kLanes, lanes));
  }
  template <int k, bool mirror, int... lane>
  __attribute__((always_inline)) static Ints codes_of(const uint8_t* codes,
                                                      std::integer_sequence<int, lane...>) {
    if constexpr (mirror) return pick<8, (kPixels - 1 - (k * kLanes + lane) / 3)...>(codes);
    return pick<8, (k * kLanes + lane) / 3 ...>(codes);
  }

  static constexpr int mirrored_value(int i) { return 3 * (kPixels - 1 - i / 3) + i % 3; }

  template <int... lane>
  __attribute__((always_inline)) static Floats load_halves(const half_t* from,
                                                           std::integer_sequence<int, lane...>) {
#ifdef __F16C__
    return Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
    return Floats{load(from[lane])...};
#endif
  }

  // bytes[index] of each lane, out of kBytes that may be read.
  template <int kBytes, int... index>
  __attribute__((always_inline)) static Ints pick(const uint8_t* bytes) {
#ifdef __AVX2__
    const auto* from = reinterpret_cast<const __m128i*>(bytes);
    const __m128i all = kBytes == 8 ? _mm_loadl_epi64(from) : _mm_loadu_si128(from);
    const Ints pattern = {static_cast<int32_t>(0x80808000u | index)...};  // 0x80 gives zero
    return reinterpret_cast<Ints>(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(all), reinterpret_cast<__m256i>(pattern)));
#else
    return Ints{bytes[index]...};
#endif
  }

  Floats scale_[kVectors], bias_[kVectors], fill_[kVectors];
  int32_t drop_, keep_;
};

}  // namespace rf
