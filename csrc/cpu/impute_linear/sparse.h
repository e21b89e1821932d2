// Few removed pixels, none in large holes: the same conjugate gradients without coarse levels, on a
// list of unknown pixels and of the pairs of them that are neighbours, instead of on the whole
// image. At 10 % random pixels that is a tenth of the work. Default weights and one system at a
// time only.
#pragma once

#include "cpu/impute_linear/cg.h"

namespace rf {
namespace impute {

template <typename Real>
class SparseSolver {
  using Layout = Rows<Real>;
  using Vec = V<Real>;
  static constexpr int64_t kVec = Layout::kVec;
  // Above one unknown in eight the whole image is faster, and the lists would not fit where they
  // are put.
  static constexpr int64_t kMinPixelsPerUnknown = 8;

 public:
  // Makes the lists from grid->fine.unknown in the memory of fine.r .. fine.z. False if there are
  // too many unknowns.
  bool build(Grid<Layout>* grid) {
    grid_ = grid;
    const Fine<Layout>& f = grid->fine;
    count_ = 0;
    for (int64_t j = 0; j < f.h; ++j) {
      const int8_t* unknown = f.unknown_row(j);
      int64_t in_row = 0;
      for (int64_t x = 0; x < f.n; ++x) in_row -= unknown[x];
      count_ += in_row;
    }
    if (grid->use_coarse || count_ * kMinPixelsPerUnknown > f.h * f.w) return false;
    if (f.h * f.stride > INT32_MAX) return false;
    length_ = (count_ + kVec - 1) / kVec * kVec;
    Arena arena(f.r);
    for (Real** field : {&sol_, &r_, &p_, &q_, &z_, &y_, &diag_, &inv_diag_}) {
      *field = arena.template take<Real>(length_);
      memset(*field, 0, static_cast<size_t>(length_) * sizeof(Real));
    }
    place_ = arena.template take<int32_t>(count_);
    first_ = arena.template take<int32_t>(4 * count_);
    second_ = arena.template take<int32_t>(4 * count_);
    weight_ = arena.template take<Real>(4 * count_);
    fill_lists();
    return true;
  }

  Outcome<Layout> run(Real tolerance, int max_iterations) {
    start();
    Outcome<Layout> out;
    SmallestEigenvalue<Real> smallest;
    Real alpha = 0, beta = 0, rz = 0, largest = 0;
    bool converged = false;
    int k = 0;
    while (k < max_iterations) {
      if (k > 0) {
        const Real pq = direct(alpha, beta);
        alpha = 0;
        if (!(pq > 0)) break;
        alpha = rz / pq;
        smallest.add_step(alpha, beta);
      }
      const Real dot = precondition(alpha, &largest);
      beta = rz > 0 ? dot / rz : Real(0);
      rz = dot;
      ++k;
      converged = largest <= smallest.stop_factor() * tolerance;
      if (converged || k == max_iterations) {
        const Vec a = splat<Real>(alpha);
        for (int64_t i = 0; i < length_; i += kVec) {
          store<Real>(sol_ + i, (load(sol_ + i) + a * load(p_ + i)) + load(z_ + i));
        }
        break;
      }
    }
    for (int64_t i = 0; i < count_; ++i) grid_->fine.u[place_[i]] = sol_[i];
    out.last_correction = splat<Real>(largest);
    out.converged = M<Real>{} - (converged ? 1 : 0);
    out.iterations = M<Real>{} + k;
    return out;
  }

 private:
  void fill_lists() {
    const Fine<Layout>& f = grid_->fine;
    // fine.u is free until an image is read: it tells which list entry a pixel has.
    int32_t* entry = reinterpret_cast<int32_t*>(f.u);
    pairs_ = 0;
    int32_t next = 0;
    for (int64_t j = 0; j < f.h; ++j) {
      if (!f.row_any[j]) continue;
      const int8_t* unknown = f.unknown_row(j);
      const int8_t* above = j > 0 ? unknown - f.stride : nullptr;
      for (int64_t x = 0; x < f.w; ++x) {
        if (!unknown[x]) continue;
        const int64_t at = j * f.stride + x;
        place_[next] = static_cast<int32_t>(at);
        entry[at] = next;
        inv_diag_[next] = f.inv_diag_row(j)[x];
        const auto pair = [&](int64_t to, Real weight) {
          first_[pairs_] = next, second_[pairs_] = entry[to], weight_[pairs_] = weight;
          ++pairs_;
        };
        if (x > 0 && unknown[x - 1]) pair(at - 1, 2);
        if (above) {
          if (x > 0 && above[x - 1]) pair(at - f.stride - 1, 1);
          if (above[x]) pair(at - f.stride, 2);
          if (x + 1 < f.w && above[x + 1]) pair(at - f.stride + 1, 1);
        }
        ++next;
      }
    }
    for (int64_t i = 0; i < count_; ++i) diag_[i] = 1 / inv_diag_[i];
    memset(f.u, 0, static_cast<size_t>(f.h * f.stride) * sizeof(Real));
  }

  // r = the weighted sum of the known neighbours; fine.u is 0 at unknown pixels.
  void start() {
    const Fine<Layout>& f = grid_->fine;
    const int64_t s = f.stride;
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t at = place_[i], y = at / s, x = at % s;
      const Real* u = f.u + at;
      const bool up = y > 0, down = y + 1 < f.h, left = x > 0, right = x + 1 < f.w;
      if (up && down && left && right) {
        r_[i] = (Real(2) * ((u[-1] + u[1]) + (u[-s] + u[s]))) +
                ((u[-s - 1] + u[-s + 1]) + (u[s - 1] + u[s + 1]));
        continue;
      }
      const auto value = [&](bool inside, int64_t offset) { return inside ? u[offset] : Real(0); };
      r_[i] = (Real(2) * ((value(left, -1) + value(right, 1)) + (value(up, -s) + value(down, s)))) +
              ((value(up && left, -s - 1) + value(up && right, -s + 1)) +
               (value(down && left, s - 1) + value(down && right, s + 1)));
    }
    memset(p_, 0, static_cast<size_t>(length_) * sizeof(Real));
    memset(q_, 0, static_cast<size_t>(length_) * sizeof(Real));
    memset(sol_, 0, static_cast<size_t>(length_) * sizeof(Real));
  }

  // out += the weighted sum over unknown neighbours.
  void add_neighbours(const Real* in, Real* out) const {
    for (int64_t k = 0; k < pairs_; ++k) {
      const int32_t a = first_[k], b = second_[k];
      const Real w = weight_[k];
      out[a] += w * in[b];
      out[b] += w * in[a];
    }
  }

  // r -= alpha q; z = (1 + second_step T) r / D. Returns r.z.
  Real precondition(Real alpha, Real* largest) {
    const Vec a = splat<Real>(alpha), second = grid_->second_step;
    for (int64_t i = 0; i < length_; i += kVec) {
      const Vec r = load(r_ + i) - a * load(q_ + i);
      store<Real>(r_ + i, r);
      store<Real>(z_ + i, r);
      store<Real>(y_ + i, (load(inv_diag_ + i) * r) * second);
    }
    add_neighbours(y_, z_);
    Vec dot{}, top{};
    for (int64_t i = 0; i < length_; i += kVec) {
      const Vec z = load(inv_diag_ + i) * load(z_ + i);
      store<Real>(z_ + i, z);
      dot += load(r_ + i) * z;
      top = vmax<Real>(top, vabs<Real>(z));
    }
    *largest = Layout::max(top)[0];
    return Layout::sum(dot)[0];
  }

  // sol += alpha p; p = z + beta p; q = A p. Returns p.q.
  Real direct(Real alpha, Real beta) {
    const Vec a = splat<Real>(alpha), b = splat<Real>(beta);
    for (int64_t i = 0; i < length_; i += kVec) {
      const Vec old = load(p_ + i), p = load(z_ + i) + b * old;
      store<Real>(sol_ + i, load(sol_ + i) + a * old);
      store<Real>(p_ + i, p);
      store<Real>(y_ + i, -p);
      store<Real>(q_ + i, load(diag_ + i) * p);
    }
    add_neighbours(y_, q_);
    Vec dot{};
    for (int64_t i = 0; i < length_; i += kVec) dot += load(p_ + i) * load(q_ + i);
    return Layout::sum(dot)[0];
  }

  Grid<Layout>* grid_ = nullptr;
  int64_t count_ = 0, length_ = 0, pairs_ = 0;
  Real *sol_, *r_, *p_, *q_, *z_, *y_, *diag_, *inv_diag_;  // [length_], 0 beyond count_
  int32_t* place_;                                          // [count_] offset in fine.u
  int32_t *first_, *second_;                                // [pairs_]
  Real* weight_;
};

}  // namespace impute
}  // namespace rf
