// Few removed pixels: the sweeps of chebyshev.h on a list of the unknown pixels and of the pairs of
// them that are neighbours, instead of on the whole image. At 10 % random pixels that is a quarter
// of the work. One system at a time only.
#pragma once

#include "cpu/impute_linear/chebyshev.h"

namespace rf {
namespace impute {

template <typename Real>
class ListSweeper {
  using Layout = Rows<Real>;
  using Vec = V<Real>;
  static constexpr int64_t kVec = Layout::kVec;

 public:
  // Makes the lists from fine.unknown in the memory of fine.r .. fine.q.
  // False if there are too many unknowns.
  bool build(const Fine<Layout>& f, int64_t unknowns) {
    if (unknowns * kListsMinPixelsPerUnknown > f.h * f.w || f.h * f.stride > INT32_MAX)
      return false;
    f_ = &f;
    count_ = unknowns;
    length_ = (count_ + kVec - 1) / kVec * kVec;
    Real* free = f.r;
    for (Real** field : {&x_, &before_, &sum_, &given_, &mean_weight_}) {
      *field = free;
      free += length_;
      memset(*field, 0, static_cast<size_t>(length_) * sizeof(Real));
    }
    weight_ = free;
    place_ = reinterpret_cast<int32_t*>(free + 4 * count_);
    first_ = place_ + count_;
    second_ = first_ + 4 * count_;
    fill_lists();
    return true;
  }

  // b of all unknown pixels; fine.u is 0 there.
  void start() {
    const Fine<Layout>& f = *f_;
    const StencilWeights<Real>& s = f.weights;
    const int64_t n = f.stride;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t at = place_[i], y = at / n, x = at % n;
      const Real* u = f.u + at;
      const bool up = y > 0, down = y + 1 < f.h, left = x > 0, right = x + 1 < f.w;
      Real sum;
      if (up && down && left && right) {
        sum = ((u[-1] + u[1]) * s.edge_x + (u[-n] + u[n]) * s.edge_y) +
              ((u[-n - 1] + u[n + 1]) * s.diag_main + (u[-n + 1] + u[n - 1]) * s.diag_anti);
      } else {
        const auto value = [&](bool inside, int64_t offset) {
          return inside ? u[offset] : Real(0);
        };
        sum = ((value(left, -1) + value(right, 1)) * s.edge_x +
               (value(up, -n) + value(down, n)) * s.edge_y) +
              ((value(up && left, -n - 1) + value(down && right, n + 1)) * s.diag_main +
               (value(up && right, -n + 1) + value(down && left, n - 1)) * s.diag_anti);
      }
      given_[i] = sum * mean_weight_[i];
    }
    memset(x_, 0, static_cast<size_t>(length_) * sizeof(Real));
    memset(before_, 0, static_cast<size_t>(length_) * sizeof(Real));
  }

  // Returns max |T x + b - x| of the last but one result.
  Vec sweep(const Vec* omega, int total) {
    Vec change{};
    for (int k = 0; k < total; ++k) {
      add_neighbours();
      const Vec w = omega[k], rest = splat<Real>(Real(1)) - w;
      const bool last = k + 1 == total;
      for (int64_t i = 0; i < length_; i += kVec) {
        const Vec mean = load(given_ + i) + load(mean_weight_ + i) * load(sum_ + i);
        store<Real>(sum_ + i, Vec{});
        if (last) change = max_of(change, abs_of(mean - load(x_ + i)));
        store<Real>(before_ + i, w * mean + rest * load(before_ + i));
      }
      std::swap(x_, before_);
    }
    return Layout::max(change);
  }

  void finish() const {
    for (int64_t i = 0; i < count_; ++i) f_->u[place_[i]] = x_[i];
  }

 private:
  void fill_lists() {
    const Fine<Layout>& f = *f_;
    const StencilWeights<Real>& s = f.weights;
    // fine.u is free until an image is read: it tells which list entry a pixel has.
    int32_t* entry = reinterpret_cast<int32_t*>(f.u);
    int32_t next = 0;
    pairs_ = 0;
    for (int64_t j = 0; j < f.h; ++j) {
      if (!f.row_any(j)) continue;
      const int8_t* unknown = f.unknown_row(j);
      const int8_t* above = j > 0 ? unknown - f.stride : nullptr;
      const Real* mean_weight = f.mean_weight_row(j);
      for (int64_t x = 0; x < f.w; ++x) {
        if (!unknown[x]) continue;
        const int64_t at = j * f.stride + x;
        place_[next] = static_cast<int32_t>(at);
        entry[at] = next;
        mean_weight_[next] = mean_weight[x];
        const auto pair = [&](int64_t to, Real weight) {
          first_[pairs_] = next, second_[pairs_] = entry[to], weight_[pairs_] = weight;
          ++pairs_;
        };
        if (x > 0 && unknown[x - 1]) pair(at - 1, s.edge_x);
        if (above) {
          if (x > 0 && above[x - 1]) pair(at - f.stride - 1, s.diag_main);
          if (above[x]) pair(at - f.stride, s.edge_y);
          if (x + 1 < f.w && above[x + 1]) pair(at - f.stride + 1, s.diag_anti);
        }
        ++next;
      }
    }
    memset(f.u, 0, static_cast<size_t>(f.h * f.stride) * sizeof(Real));
  }

  // sum += the weighted sum over unknown neighbours.
  void add_neighbours() const {
    for (int64_t k = 0; k < pairs_; ++k) {
      const int32_t a = first_[k], b = second_[k];
      const Real w = weight_[k];
      sum_[a] += w * x_[b];
      sum_[b] += w * x_[a];
    }
  }

  const Fine<Layout>* f_ = nullptr;
  int64_t count_ = 0, length_ = 0, pairs_ = 0;
  // [length_], 0 beyond count_. given: b; sum: of the neighbours in x, 0 between sweeps.
  Real *x_, *before_, *sum_, *given_, *mean_weight_;
  int32_t* place_;            // [count_] offset in fine.u
  int32_t *first_, *second_;  // [pairs_], at most four per entry
  Real* weight_;              // [pairs_]
};

}  // namespace impute
}  // namespace rf
