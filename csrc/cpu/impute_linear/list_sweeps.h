// Few removed pixels: the sweeps of chebyshev.h on a list of the unknown pixels and of the pairs of
// them that are neighbours, instead of on the whole image. At 10 % random pixels that is a quarter
// of the work. One system at a time only.
#pragma once

#include "cpu/impute_linear/chebyshev.h"
#include "cpu/support/bit_rows.h"

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
    edge_ = second_ + 4 * count_;
    fill_lists();
    return true;
  }

  // b of all unknown pixels; fine.u is 0 there.
  void start() {
    const Fine<Layout>& f = *f_;
    const StencilWeights<Real>& s = f.weights;
    const int64_t n = f.stride;
    const auto add_up = [&](auto value) {
      return ((value(0, -1) + value(0, 1)) * s.edge_x + (value(-1, 0) + value(1, 0)) * s.edge_y) +
             ((value(-1, -1) + value(1, 1)) * s.diag_main +
              (value(-1, 1) + value(1, -1)) * s.diag_anti);
    };
    int64_t i = 0;
    for (int64_t e = 0; e <= edges_; ++e) {
      const int64_t end = e < edges_ ? edge_[e] : count_;
      for (; i < end; ++i) {
        const Real* const u = f.u + place_[i];
        given_[i] =
            mean_weight_[i] * add_up([&](int64_t dy, int64_t dx) { return u[dy * n + dx]; });
      }
      if (e == edges_) break;
      const int64_t at = place_[i], y = at / n, x = at % n;
      given_[i] = mean_weight_[i] * add_up([&](int64_t dy, int64_t dx) {
                    const bool inside = y + dy >= 0 && y + dy < f.h && x + dx >= 0 && x + dx < f.w;
                    return inside ? f.u[at + dy * n + dx] : Real(0);
                  });
      ++i;
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
  // Without branches on the mask, other than from one unknown pixel to the next: they would be
  // mispredicted. A pair is written for every neighbour, and counted if that is unknown.
  void fill_lists() {
    const Fine<Layout>& f = *f_;
    const StencilWeights<Real>& s = f.weights;
    // fine.u is free until an image is read, which fills it: it tells which list entry a pixel has.
    int32_t* const entries = reinterpret_cast<int32_t*>(f.u);
    // Copies, as stores to the lists might change members.
    int32_t *const place = place_, *const first = first_, *const second = second_,
                   *const edge = edge_;
    Real *const pair_weight = weight_, *const weights = mean_weight_;
    const Real edge_x = s.edge_x, edge_y = s.edge_y, diag_main = s.diag_main,
               diag_anti = s.diag_anti;
    const int64_t w = f.w;
    const auto bits_of = [&](const int8_t* row, int64_t x) {
      if (row == nullptr || x >= f.w) return uint64_t{0};
      if (x + 64 <= f.stride) return nonzero_bits(reinterpret_cast<const uint8_t*>(row + x));
      uint8_t rest[64] = {};
      memcpy(rest, row + x, static_cast<size_t>(f.w - x));
      return nonzero_bits(rest);
    };
    int32_t next = 0;
    int64_t pairs = 0, edges = 0;
    for (int64_t j = 0; j < f.h; ++j) {
      if (!f.row_any(j)) continue;
      const int8_t* const unknown = f.unknown_row(j);
      const int8_t* const above = j > 0 ? unknown - f.stride : nullptr;
      int32_t* const entry = entries + j * f.stride;
      const int32_t* const entry_above = j > 0 ? entry - f.stride : entry;
      const Real* const mean_weight = f.mean_weight_row(j);
      const bool edge_row = j == 0 || j + 1 == f.h;
      uint64_t before = 0, before_above = 0, up = bits_of(above, 0);  // before: of the last word
      for (int64_t base = 0; base < w; base += 64) {
        const uint64_t here = bits_of(unknown, base), next_up = bits_of(above, base + 64);
        const uint64_t left = here << 1 | before >> 63, up_left = up << 1 | before_above >> 63,
                       up_right = up >> 1 | next_up << 63;
        for (uint64_t rest = here; rest != 0; rest &= rest - 1) {
          const int bit = __builtin_ctzll(rest);
          const int64_t x = base + bit, x_left = x > 0 ? x - 1 : 0, x_right = x + 1 < w ? x + 1 : x;
          place[next] = static_cast<int32_t>(j * f.stride + x);
          entry[x] = next;
          weights[next] = mean_weight[x];
          edge[edges] = next;
          edges += edge_row || x == 0 || x + 1 == w;
          const auto pair = [&](uint64_t bits, const int32_t* row, int64_t to, Real weight) {
            first[pairs] = next, second[pairs] = row[to], pair_weight[pairs] = weight;
            pairs += static_cast<int64_t>(bits >> bit & 1);
          };
          pair(left, entry, x_left, edge_x);
          pair(up_left, entry_above, x_left, diag_main);
          pair(up, entry_above, x, edge_y);
          pair(up_right, entry_above, x_right, diag_anti);
          ++next;
        }
        before = here, before_above = up, up = next_up;
      }
    }
    pairs_ = pairs, edges_ = edges;
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
  int64_t count_ = 0, length_ = 0, pairs_ = 0, edges_ = 0;
  // [length_], 0 beyond count_. given: b; sum: of the neighbours in x, 0 between sweeps.
  Real *x_, *before_, *sum_, *given_, *mean_weight_;
  int32_t* place_;            // [count_] offset in fine.u
  int32_t *first_, *second_;  // [pairs_], at most four per entry
  int32_t* edge_;             // [edges_] entries of pixels at the border of the image
  Real* weight_;              // [pairs_]
};

}  // namespace impute
}  // namespace rf
