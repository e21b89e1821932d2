// The usual Gaussian: one sigma for both axes, a small radius, reflected borders,
// whole vectors. Two rows at a time: the vertical pass loads what both need once
// (loads bound it, as images seldom begin at a multiple of a vector), and leaves two
// rows in the L1 cache, aligned; the horizontal pass runs through each from left
// to right and finds the neighbours of a vector by shuffles. The general way loads
// the vertical sums again at every offset. Same sums in the same order, so same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/support/simd.h"

namespace rf {

template <int kRadius, typename C>
class GaussianStream {
 public:
  // pair: memory for two rows, aligned to a vector.
  GaussianStream(const C* weights, C* pair, int64_t w) : pair_(pair), w_(w) {
    for (int k = 0; k <= kRadius; ++k) weights_[k] = V{} + weights[k];
  }

  static bool fits(int64_t w) { return kRadius <= kLanes && w % kLanes == 0; }

  // Rows of dst, `w` apart. Row y is made of those that begin rows[y] ... rows[y + 2 kRadius]
  // values into the image; rows has one more than the last row needs.
  void run(const C* image, const int64_t* rows, int64_t count, C* dst) const {
    // Rows of four vectors (32x32 images) without loops: each would end in a wrong prediction.
    w_ == 4 * kLanes ? run_rows<4>(image, rows, count, dst) : run_rows<0>(image, rows, count, dst);
  }

 private:
  using V = vector_t<C>;
  static constexpr int kLanes = Vector<C>::kLanes, kHalf = kLanes / 2;

  // kVectors: of a row; 0 if known at run time only.
  template <int kVectors>
  void run_rows(const C* image, const int64_t* rows, int64_t count, C* dst) const {
    GaussianStream self = *this;  // stores might change the members, for all that is known
    if (kVectors > 0) self.w_ = kVectors * kLanes;
    for (int64_t y = 0; y < count; y += 2) {
      self.blur_columns(image, rows + y);
      const int64_t* const next = rows + std::min(y + 2, count - 1) + 2 * kRadius;
      self.blur_row(self.pair_, dst + y * self.w_, image + next[0]);
      if (y + 1 == count) return;
      self.blur_row(self.pair_ + self.w_, dst + (y + 1) * self.w_, image + next[1]);
    }
  }

  // Vertical pass of two rows, a and b, into pair_.
  __attribute__((always_inline)) void blur_columns(const C* image, const int64_t* rows) const {
    const C* from[2 * kRadius + 2];
    for (int k = 0; k < 2 * kRadius + 2; ++k) from[k] = image + rows[k];
#pragma GCC unroll 4
    for (int64_t x = 0; x < w_; x += kLanes) {
      const auto load = [&](int k) __attribute__((always_inline)) {
        return in_register(load_as<V>(from[k] + x));
      };
      V above_a = load(0), above_b = load(1), below_a = load(2 * kRadius),
        below_b = load(2 * kRadius + 1), a = -V{}, b = -V{};
#pragma GCC unroll 8
      for (int k = kRadius; k > 0; --k) {
        a += weights_[k] * (above_a + below_a);
        b += weights_[k] * (above_b + below_b);
        above_a = above_b;  // each row is loaded once
        below_b = below_a;
        if (k > 1) above_b = load(kRadius - k + 2);
        if (k > 1) below_a = load(kRadius + k - 1);
      }
      store_as(pair_ + x, a + weights_[0] * above_a);
      store_as(pair_ + w_ + x, b + weights_[0] * below_b);
    }
  }

  // Two vectors side by side, and what lies half in the one and half in the other: shuffles between
  // the halves of registers cost more than those within, and this one serves both vectors.
  struct Neighbours {
    Neighbours(V a, V b) : a(a), middle(shifted<kHalf>(a, b)), b(b) {}

    // The vector that begins kBy lanes into a.
    template <int kBy>
    __attribute__((always_inline)) V at() const {
      if constexpr (kBy <= kHalf) {
        return within_halves<kBy>(a, middle);
      } else {
        return within_halves<kBy - kHalf>(middle, b);
      }
    }
    template <int kBy>
    __attribute__((always_inline)) static V within_halves(V x, V y) {
      return within_halves<kBy>(x, y, std::make_integer_sequence<int, kLanes>{});
    }
    template <int kBy, int... lane>
    __attribute__((always_inline)) static V within_halves(V x, V y,
                                                          std::integer_sequence<int, lane...>) {
      return shuffle<(lane % kHalf + kBy < kHalf ? lane + kBy : kLanes + lane + kBy - kHalf)...>(x,
                                                                                                 y);
    }

    V a, middle, b;
  };

  // Horizontal pass of one row; meanwhile `ahead`, which the next vertical pass needs, is fetched.
  __attribute__((always_inline)) void blur_row(const C* row, C* dst, const C* ahead) const {
    V current = load_as<V>(row);
    Neighbours left(reversed(current), current);
    int64_t x = 0;
#pragma GCC unroll 4
    for (; x + kLanes < w_; x += kLanes) {
      const V next = load_as<V>(row + x + kLanes);
      __builtin_prefetch(ahead + x);
      const Neighbours right(current, next);
      store_as(dst + x, sum(left, current, right));
      left = right;
      current = next;
    }
    store_as(dst + x, sum(left, current, Neighbours(current, reversed(current))));
  }

  __attribute__((always_inline)) V sum(const Neighbours& left, V current,
                                       const Neighbours& right) const {
    V total = -V{};
    add_shifted<kRadius>(left, right, total);
    return total + weights_[0] * current;
  }
  template <int k>
  __attribute__((always_inline)) void add_shifted(const Neighbours& left, const Neighbours& right,
                                                  V& total) const {
    if constexpr (k > 0) {
      total += weights_[k] * (left.template at<kLanes - k>() + right.template at<k>());
      add_shifted<k - 1>(left, right, total);
    }
  }

  V weights_[kRadius + 1];
  C* pair_;
  int64_t w_;
};

}  // namespace rf
