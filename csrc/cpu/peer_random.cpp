// The random numbers of NumPy's and torch's global generators, drawn as those libraries draw them
// (numbers to rounding, the generator's state to the bit) but many at a time. Python tries them
// against the libraries themselves before it uses them. One thread: a generator has one order.
#include "cpu/peer_random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "common/philox.h"

// Tells the compiler that the turns of the next loop do not depend on each other within a vector.
#ifdef __clang__
#define RF_NO_DEPENDENCE _Pragma("clang loop vectorize(assume_safety)")
#else
#define RF_NO_DEPENDENCE _Pragma("GCC ivdep")
#endif

namespace {

// MT19937 (Matsumoto and Nishimura, 1998), behind both generators: 624 words, and which is next.
class Mersenne {
 public:
  static constexpr int64_t kWords = 624;
  Mersenne(uint32_t* state, int64_t next) : state_(state), next_(next) {}
  int64_t next() const { return next_; }

  void words(uint32_t* out, int64_t n) {
    while (n > 0) {
      if (next_ == kWords) twist();
      const int64_t count = std::min(n, kWords - next_);
      for (int64_t i = 0; i < count; ++i) out[i] = temper(state_[next_ + i]);
      next_ += count, out += count, n -= count;
    }
  }

 private:
  static uint32_t temper(uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  static uint32_t mix(uint32_t u, uint32_t v) {
    return (((u & 0x80000000u) | (v & 0x7fffffffu)) >> 1) ^ (0x9908b0dfu & (0u - (v & 1u)));
  }
  // Words depend on others at least 227 away, so that vectors of them are made at once.
  void twist() {
    constexpr int64_t kAhead = 397, kBack = kWords - kAhead;
    RF_NO_DEPENDENCE
    for (int64_t i = 0; i < kBack; ++i) {
      state_[i] = state_[i + kAhead] ^ mix(state_[i], state_[i + 1]);
    }
    RF_NO_DEPENDENCE
    for (int64_t i = kBack; i < kWords - 1; ++i) {
      state_[i] = state_[i - kBack] ^ mix(state_[i], state_[i + 1]);
    }
    state_[kWords - 1] = state_[kAhead - 1] ^ mix(state_[kWords - 1], state_[0]);
    next_ = 0;
  }

  uint32_t* state_;
  int64_t next_;
};

// log x of a normal 0 < x < 1, to about 1e-15 relative, in a form that compilers vectorise.
double log_below_one(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, 8);
  // Above sqrt(2) the mantissa is halved, so that it lies around 1 and its logarithm around 0.
  const uint64_t above = (bits & 0xfffffffffffffu) > 0x6a09e667f3bccu ? 1 : 0;
  const double exponent =
      static_cast<double>(static_cast<int32_t>(bits >> 52) - 1023 + static_cast<int32_t>(above));
  const uint64_t mantissa = (bits & 0xfffffffffffffu) | ((1023 - above) << 52);
  double m;
  std::memcpy(&m, &mantissa, 8);
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double p = 2.0 / 21;
  for (int k = 19; k >= 1; k -= 2) p = p * s2 + 2.0 / k;
  return exponent * 0.693147180559945309 + p * s;
}

// Two runs of eight uniforms to 16 normals, as torch does: radius from the first, angle from the
// second, of 24 bits each.
void torch_box_muller(const uint32_t* words, float* out) {
  for (int i = 0; i < 8; ++i) {
    const uint32_t u = words[i] & 0xffffffu, v = words[i + 8] & 0xffffffu;
    const float radius = sqrtf(-2.0f * rf::log_uniform(0xffffffu - u));
    float cosine, sine;
    rf::cos_sin_turn(v, &cosine, &sine);
    out[i] = radius * cosine, out[i + 8] = radius * sine;
  }
}

template <typename T>
int64_t removed_pixels(const T* kept, uint8_t* removed, int64_t n) {
  constexpr int64_t kBlock = 1 << 16;  // 32-bit counters vectorise
  int64_t count = 0, neither = 0;
  for (int64_t first = 0; first < n; first += kBlock) {
    int32_t gone_here = 0, neither_here = 0;
    for (int64_t i = first; i < std::min(n, first + kBlock); ++i) {
      const int32_t gone = kept[i] == T(0), known = kept[i] > T(0.5);
      removed[i] = static_cast<uint8_t>(gone);
      gone_here += gone, neither_here += 1 - (gone | known);
    }
    count += gone_here, neither += neither_here;
  }
  return neither > 0 ? -1 : count;
}

template <typename T>
void add_in_order(T* x, const uint8_t* removed, const float* values, double scale, int64_t images,
                  int64_t channels, int64_t pixels) {
  const T s = static_cast<T>(scale);
  for (int64_t image = 0; image < images; ++image, removed += pixels) {
    for (int64_t channel = 0; channel < channels; ++channel, x += pixels) {
      constexpr int64_t kWord = 8;
      int64_t i = 0;
      for (; i + kWord <= pixels; i += kWord) {
        uint64_t eight;
        std::memcpy(&eight, removed + i, kWord);
        if (eight == 0) continue;
        if (eight == 0x0101010101010101u) {
          for (int j = 0; j < kWord; ++j) x[i + j] += s * static_cast<T>(values[j]);
          values += kWord;
          continue;
        }
        for (; eight != 0; eight &= eight - 1) {
          x[i + __builtin_ctzll(eight) / 8] += s * static_cast<T>(*values++);
        }
      }
      for (; i < pixels; ++i) {
        if (removed[i]) x[i] += s * static_cast<T>(*values++);
      }
    }
  }
}

template <typename T>
void add_at(T* x, const int64_t* indices, const double* values, double scale, int64_t channels,
            int64_t pixels, int64_t k) {
  const T s = static_cast<T>(scale);
  for (int64_t channel = 0; channel < channels; ++channel, x += pixels, values += k) {
    for (int64_t j = 0; j < k; ++j) x[indices[j]] += s * static_cast<T>(values[j]);
  }
}

}  // namespace

extern "C" {

// Marsaglia's polar method: a pair of normals from two uniform doubles in the unit circle, of which
// the second is kept for the next call.
void rf_numpy_normals(uint32_t* state, int64_t* place, double* kept, double* out, int64_t n) {
  if (n > 0 && place[1]) {
    *out++ = *kept;
    *kept = 0, place[1] = 0, --n;
  }
  Mersenne generator(state, place[0]);
  constexpr int64_t kPairs = 256;
  uint32_t words[4 * kPairs];
  double xs[kPairs + 1], ys[kPairs + 1], squares[kPairs + 1], factors[kPairs];
  for (int64_t wanted = (n + 1) / 2; wanted > 0;) {
    // As many pairs as are still wanted: at least so many are drawn, however many are rejected.
    const int64_t pairs = std::min(wanted, kPairs);
    generator.words(words, 4 * pairs);
    double x[kPairs], y[kPairs], square[kPairs];
    const auto uniform = [](uint32_t a, uint32_t b) {
      const double high = static_cast<double>(static_cast<int32_t>(a >> 5));
      const double low = static_cast<double>(static_cast<int32_t>(b >> 6));
      return (high * 67108864.0 + low) / 9007199254740992.0;
    };
    for (int64_t i = 0; i < pairs; ++i) {
      x[i] = 2.0 * uniform(words[4 * i], words[4 * i + 1]) - 1.0;
      y[i] = 2.0 * uniform(words[4 * i + 2], words[4 * i + 3]) - 1.0;
      square[i] = x[i] * x[i] + y[i] * y[i];
    }
    int64_t count = 0;
    for (int64_t i = 0; i < pairs; ++i) {
      xs[count] = x[i], ys[count] = y[i], squares[count] = square[i];
      count += square[i] < 1.0 && square[i] != 0.0;
    }
    for (int64_t i = 0; i < count; ++i) {
      factors[i] = std::sqrt(-2.0 * log_below_one(squares[i]) / squares[i]);
    }
    wanted -= count;
    const bool odd = wanted == 0 && n % 2 == 1;
    for (int64_t i = 0; i < count - odd; ++i, out += 2) {
      out[0] = factors[i] * ys[i], out[1] = factors[i] * xs[i];
    }
    if (odd) {  // what is kept is part of the state: to the bit, with the library's logarithm
      const double f = std::sqrt(-2.0 * std::log(squares[count - 1]) / squares[count - 1]);
      *out = f * ys[count - 1];
      *kept = f * xs[count - 1], place[1] = 1;
    }
  }
  place[0] = generator.next();
}

void rf_torch_normals(uint32_t* state, int64_t* next, const int64_t* sizes, int64_t count,
                      float* out) {
  Mersenne generator(state, *next);
  constexpr int64_t kBlock = 16, kBatch = 64 * kBlock;
  uint32_t words[kBatch];
  for (int64_t k = 0; k < count; ++k) {
    const int64_t n = sizes[k], whole = n / kBlock * kBlock;
    for (int64_t i = 0; i < whole; i += kBatch) {
      const int64_t here = std::min(kBatch, whole - i);
      generator.words(words, here);
      for (int64_t j = 0; j < here; j += kBlock) torch_box_muller(words + j, out + i + j);
    }
    if (n > whole) {  // the uniforms left over are drawn, and the last 16 values drawn anew
      generator.words(words, n - whole);
      generator.words(words, kBlock);
      torch_box_muller(words, out + n - kBlock);
    }
    out += n;
  }
  *next = generator.next();
}

int64_t rf_mark_pixels(const int64_t* indices, int64_t k, uint8_t* mask, int64_t n) {
  int64_t distinct = 0;
  for (int64_t j = 0; j < k; ++j) {
    if (indices[j] < 0 || indices[j] >= n) return -1;
    distinct += mask[indices[j]] == 0;
    mask[indices[j]] = 1;
  }
  return distinct;
}

int64_t rf_removed_pixels_float32(const float* kept, uint8_t* removed, int64_t n) {
  return removed_pixels(kept, removed, n);
}
int64_t rf_removed_pixels_float64(const double* kept, uint8_t* removed, int64_t n) {
  return removed_pixels(kept, removed, n);
}
void rf_add_in_order_float32(float* x, const uint8_t* removed, const float* values, double scale,
                             int64_t images, int64_t channels, int64_t pixels) {
  add_in_order(x, removed, values, scale, images, channels, pixels);
}
void rf_add_in_order_float64(double* x, const uint8_t* removed, const float* values, double scale,
                             int64_t images, int64_t channels, int64_t pixels) {
  add_in_order(x, removed, values, scale, images, channels, pixels);
}
void rf_add_at_float32(float* x, const int64_t* indices, const double* values, double scale,
                       int64_t channels, int64_t pixels, int64_t k) {
  add_at(x, indices, values, scale, channels, pixels, k);
}
void rf_add_at_float64(double* x, const int64_t* indices, const double* values, double scale,
                       int64_t channels, int64_t pixels, int64_t k) {
  add_at(x, indices, values, scale, channels, pixels, k);
}

}  // extern "C"
