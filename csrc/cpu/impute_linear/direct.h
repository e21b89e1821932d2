// Small images with few unknown pixels are solved directly: L D L^T of the matrix in its envelope,
// in double, once for all channels. One column of the factor after the other is as long as there
// are unknown pixels up to the row below; sweeps and cycles take as long as for any other mask.
#pragma once

#include <algorithm>
#include <limits>

#include "cpu/impute_linear/image_io.h"
#include "cpu/support/simd.h"

namespace rf {
namespace impute {

class DirectSolver {
 public:
  // Whether images of this size are worth a try: larger ones are quicker solved by sweeps over
  // lists of pixels, or by cycles.
  static bool fits(const Job& job, const Plan& plan) {
    return plan.connected && job.h * job.w <= 64 * 64;
  }

  DirectSolver(const Job& job, const Plan& plan, void* memory)
      : job_(job),
        weights_(plan.weights[0]),
        iterates_in_double_(plan.custom || job.rows.merges_double || needs_double(plan, job.tol)),
        arena_(memory, Arena::kStaggered) {
    stride_ = job.w + 2;
    capacity_ = std::min(job.h * job.w, kDirectMaxUnknown);
    column_capacity_ = kDirectColumnValues * capacity_;
    number_ = arena_.take<int32_t>((job.h + 2) * stride_);
    plane_ = arena_.take<double>((job.h + 2) * stride_ + kLanes);
    for (double*& row : row_diagonal_) row = arena_.take<double>(job.w);
    for (int32_t** list : {&pixel_, &first_, &reach_, &start_}) {
      *list = arena_.take<int32_t>(capacity_ + kLanes);
    }
    inverse_ = arena_.take<double>(capacity_);
    diagonal_ = arena_.take<double>(capacity_ + 1);
    given_ = arena_.take<double>(kLanes * capacity_);
    solution_ = arena_.take<double>(kLanes * (capacity_ + kLanes));
    columns_ = arena_.take<double>(column_capacity_ + 2 * kDirectMaxReach);
    buffers_.noise = arena_.take<float>(job.w + kPhiloxSlack);
    buffers_.narrow = arena_.take<float>(job.w);
    if (memory == nullptr) return;
    const auto frame = [&](int64_t i) { number_[i] = -1, plane_[i] = 0; };
    for (int64_t x = 0; x < stride_; ++x) frame(x), frame((job.h + 1) * stride_ + x);
    for (int64_t y = 1; y <= job.h; ++y) frame(y * stride_), frame((y + 1) * stride_ - 1);
    const Weights& s = weights_;
    for (int kind = 0; kind < 4; ++kind) {
      const double up = kind & 1, down = kind >> 1;  // whether there are such rows
      for (int64_t x = 0; x < job.w; ++x) {
        const double left = x > 0, right = x + 1 < job.w;
        row_diagonal_[kind][x] = s.edge_x * (left + right) + s.edge_y * (up + down) +
                                 s.diag_main * (up * left + down * right) +
                                 s.diag_anti * (up * right + down * left);
      }
    }
  }
  int64_t bytes() const { return arena_.bytes(); }

  // Solves all channels of an image and writes them; false, and nothing written, if the image is
  // better solved by iterating. That depends on its mask only.
  bool solve(int64_t image) {
    if (!number_unknown(job_.mask_of(image)) || !find_envelope()) return false;
    assemble();
    factorise();
    for (int64_t channel = 0; channel < job_.c; channel += kLanes) {
      const int count = static_cast<int>(std::min<int64_t>(kLanes, job_.c - channel));
      solve_channels(image, channel, count);
    }
    job_.empty[image] = 0;
    return true;
  }

 private:
  static constexpr int kLanes = 4;
  using Quad = V<double>;  // four channels, or four values of a column

  // The unknown pixels of the mask in the order of the rows;
  // false if there are too many, or no known ones.
  bool number_unknown(const uint8_t* mask) {
    const int64_t pixels = job_.h * job_.w;
    int64_t removed = 0;
    for (int64_t i = 0; i < pixels; ++i) removed += mask[i] != 0;
    if (removed > capacity_ || removed == pixels) return false;
    if (removed * cycles_of(removed / job_.h) > limit(kMultigridCycles)) return false;
    int32_t next = 0;
    for (int64_t y = 0; y < job_.h; ++y, mask += job_.w) {
      const int64_t row = at(y, 0);
      const double* diagonal = row_diagonal_[(y > 0) + 2 * (y + 1 < job_.h)];
      for (int64_t x = 0; x < job_.w; ++x) {
        number_[row + x] = mask[x] ? next : -1;
        pixel_[next] = static_cast<int32_t>(row + x);
        diagonal_[next] = diagonal[x];
        next += mask[x] != 0;
      }
    }
    count_ = next;
    return true;
  }

  // Where the columns of the factor begin and end; false if iterating is expected to be quicker.
  // Without branches on the mask, here and below: they would be mispredicted for every pixel.
  bool find_envelope() {
    // first_[i]: the first column of row i. Later rows do not begin before earlier ones. Then
    // reach_[j] is the last row that begins at or before column j.
    int32_t first = std::numeric_limits<int32_t>::max();
    for (int32_t i = count_ - 1; i >= 0; --i) {
      const int32_t* n = number_ + pixel_[i];
      int32_t own = i;
      for (const int64_t offset : {int64_t{-1}, 1 - stride_, -stride_, -stride_ - 1}) {
        own = n[offset] >= 0 ? n[offset] : own;
      }
      first_[i] = first = std::min(first, own);
      reach_[i] = 0;
    }
    for (int32_t i = 0; i < count_; ++i) reach_[first_[i]] = i;
    int64_t values = 0, cycles = 0, longest = 0;
    int32_t last = 0;
    for (int32_t j = 0; j < count_; ++j) {
      last = std::max(last, reach_[j]);
      const int64_t reach = (last - j + kLanes - 1) / kLanes * kLanes;
      reach_[j] = static_cast<int32_t>(reach);
      start_[j] = static_cast<int32_t>(values);
      values += reach + 1;
      cycles += cycles_of(reach);
      longest = std::max(longest, reach);
    }
    for (int k = 0; k < kLanes; ++k) start_[count_ + k] = static_cast<int32_t>(values);
    // Spread evenly, as many pixels would lie between one and the next below it as are in a row.
    const bool clustered = 2 * values > 3 * count_ * (count_ / job_.h + 1 + kLanes);
    return values <= column_capacity_ && longest <= kDirectMaxReach &&
           cycles <= limit(clustered ? kMultigridCycles : kSweepsCycles);
  }

  // What a column of the factor costs, with its part in the solution; and what iterating costs.
  int64_t cycles_of(int64_t reach) const {
    return reach * reach / 6 + 8 * reach + 100 + 50 * job_.c;
  }
  int64_t limit(int64_t per_pixel) const {
    return (iterates_in_double_ ? 2 : 1) * per_pixel * job_.c * job_.h * job_.w;
  }

  // The matrix: on the diagonal the weights to all neighbours inside the image, beside it those to
  // unknown ones, negative.
  void assemble() {
    const int64_t values = start_[count_];
    std::fill(columns_, columns_ + values + kLanes, 0.0);
    const Weights& s = weights_;
    for (int32_t i = 0; i < count_; ++i) {
      columns_[start_[i]] = diagonal_[i];
      const int32_t* n = number_ + pixel_[i];
      const auto couple = [&](int64_t offset, double weight) {
        const int32_t j = n[offset], column = std::max(j, 0);
        columns_[j >= 0 ? start_[column] + i - j : values + kLanes] = -weight;
      };
      couple(-1, s.edge_x);
      couple(-stride_, s.edge_y);
      couple(-stride_ - 1, s.diag_main);
      couple(-stride_ + 1, s.diag_anti);
    }
  }

  // Column after column is taken out of those to its right. All columns end in a whole vector, with
  // zeros, and so does the copy that is taken: what is done too much changes nothing.
  void factorise() {
    double pivot[2 * kDirectMaxReach + kLanes];
    for (int32_t j = 0; j < count_; ++j) {
      double* const column = columns_ + start_[j];
      const int32_t reach = reach_[j];
      const double inverse = 1 / column[0];
      inverse_[j] = inverse;
      for (int32_t k = 0; k < reach; k += kLanes) {
        const Quad values = load_as<Quad>(column + 1 + k);
        store_as(pivot + k, values);
        store_as(pivot + reach + k, Quad{});
        store_as(column + 1 + k, values * inverse);
      }
      switch (reach / kLanes) {
        case 0:
          break;
        case 1:
          take_out<1>(j, pivot);
          break;
        case 2:
          take_out<2>(j, pivot);
          break;
        case 3:
          take_out<3>(j, pivot);
          break;
        case 4:
          take_out<4>(j, pivot);
          break;
        default:
          take_out<0>(j, pivot);
      }
    }
  }

  // kVectors: of the column; 0: many.
  template <int kVectors>
  void take_out(int32_t j, const double* pivot) {
    const double* const factors = columns_ + start_[j] + 1;
    const int32_t reach = kVectors > 0 ? kVectors * kLanes : reach_[j];
    for (int32_t t = 0; t < reach; ++t) {
      const double factor = factors[t];
      double* const target = columns_ + start_[j + 1 + t];
      const int32_t size = kVectors > 0 ? reach : reach - t;
#pragma GCC unroll 4
      for (int32_t k = 0; k < size; k += kLanes) {
        store_as(target + k, load_as<Quad>(target + k) - factor * load_as<Quad>(pivot + t + k));
      }
    }
  }

  // Reads, solves and writes up to four channels.
  void solve_channels(int64_t image, int64_t channel, int count) {
    double low[kLanes], high[kLanes];
    bool finite[kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      if (lane < count) {
        finite[lane] = read_channel({image, channel + lane}, lane, &low[lane], &high[lane]);
      } else {
        for (int32_t i = 0; i < count_; ++i) given_[kLanes * i + lane] = 0;
      }
    }
    substitute();
    double change[kLanes];
    largest_change(change);
    for (int lane = 0; lane < count; ++lane) {
      for (int32_t i = 0; i < count_; ++i) {
        const double value = solution_[kLanes * i + lane];
        plane_[pixel_[i]] = std::min(std::max(value, low[lane]), high[lane]);
      }
      const System system{image, channel + lane};
      for (int64_t y = 0; y < job_.h; ++y) {
        write_row<double>(job_, system, y, plane_ + at(y, 0), buffers_);
      }
      const int64_t k = image * job_.c + system.channel;
      const double range = high[lane] - low[lane];
      const bool trivial = count_ == 0 || !(range > 0);
      job_.iterations[k] = trivial ? 0 : 1;
      job_.residual[k] = trivial ? 0 : change[lane] / range;
      job_.status[k] = !finite[lane]                             ? RF_IMPUTE_NON_FINITE
                       : trivial || job_.residual[k] <= job_.tol ? RF_IMPUTE_CONVERGED
                                                                 : RF_IMPUTE_NOT_CONVERGED;
    }
  }

  // The known pixels of a channel, their range, and what they give to the unknown ones. False if
  // one of them is not finite.
  bool read_channel(System system, int lane, double* lowest, double* highest) {
    const double inf = std::numeric_limits<double>::infinity();
    Quad low = splat(inf), high = splat(-inf), sum{};
    for (int64_t y = 0; y < job_.h; ++y) {
      double* const row = plane_ + at(y, 0);
      read_row<double>(job_, system, y, row);
      for (int64_t x = 0; x < job_.w; x += kLanes) {
        using Numbers = vector_t<int32_t, 4 * kLanes>;
        M<double> known =
            __builtin_convertvector(load_as<Numbers>(number_ + at(y, x)) < 0, M<double>);
        for (int64_t l = job_.w - x; l < kLanes; ++l) known[l] = 0;  // beyond the row
        const Quad v = load_as<Quad>(row + x);
        low = min_of(low, select<double>(known, v, splat(inf)));
        high = max_of(high, select<double>(known, v, splat(-inf)));
        sum += keep<double>(known, v - v);  // not 0 where one is not finite
      }
    }
    *lowest = low[0], *highest = high[0];
    double total = sum[0];
    for (int l = 1; l < kLanes; ++l) {
      *lowest = std::min(*lowest, low[l]);
      *highest = std::max(*highest, high[l]);
      total += sum[l];
    }
    const bool finite = total == 0;
    if (!finite) *lowest = *highest = 0;
    for (int32_t i = 0; i < count_; ++i) plane_[pixel_[i]] = 0;
    const Weights& s = weights_;
    for (int32_t i = 0; i < count_; ++i) {
      const double* p = plane_ + pixel_[i];
      const double edges = s.edge_x * (p[-1] + p[1]) + s.edge_y * (p[-stride_] + p[stride_]);
      const double corners = s.diag_main * (p[-stride_ - 1] + p[stride_ + 1]) +
                             s.diag_anti * (p[-stride_ + 1] + p[stride_ - 1]);
      given_[kLanes * i + lane] = finite ? edges + corners : 0;
    }
    return finite;
  }

  // Forward and backward, four channels at a time.
  void substitute() {
    double* const x = solution_;
    std::copy(given_, given_ + kLanes * count_, x);
    std::fill(x + kLanes * count_, x + kLanes * (count_ + kLanes), 0.0);
    for (int32_t j = 0; j < count_; ++j) {
      const double* const column = columns_ + start_[j] + 1;
      const Quad own = load_as<Quad>(x + kLanes * j);
      double* const target = x + kLanes * (j + 1);
      for (int32_t t = 0; t < reach_[j]; t += kLanes) {
        for (int k = t; k < t + kLanes; ++k) {
          store_as(target + kLanes * k, load_as<Quad>(target + kLanes * k) - column[k] * own);
        }
      }
    }
    for (int32_t j = count_ - 1; j >= 0; --j) {
      const double *const column = columns_ + start_[j] + 1, *const source = x + kLanes * (j + 1);
      Quad sums[kLanes] = {};
      for (int32_t t = 0; t < reach_[j]; t += kLanes) {
        for (int k = 0; k < kLanes; ++k) {
          sums[k] += column[t + k] * load_as<Quad>(source + kLanes * (t + k));
        }
      }
      store_as(x + kLanes * j, load_as<Quad>(x + kLanes * j) * inverse_[j] -
                                   ((sums[0] + sums[1]) + (sums[2] + sums[3])));
    }
  }

  // How far an unknown pixel is from the mean of its neighbours, at most, in each channel.
  void largest_change(double change[kLanes]) {
    const Weights& s = weights_;
    double* const x = solution_;
    Quad largest{};  // x[count_] is 0 and stands for known neighbours, which are in given_
    for (int32_t i = 0; i < count_; ++i) {
      const int32_t* n = number_ + pixel_[i];
      const auto both = [&](int64_t offset) __attribute__((always_inline)) {
        const auto value = [&](int32_t j) __attribute__((always_inline)) {
          return load_as<Quad>(x + kLanes * (j < 0 ? count_ : j));
        };
        return value(n[-offset]) + value(n[offset]);
      };
      const Quad around = load_as<Quad>(given_ + kLanes * i) + s.edge_x * both(1) +
                          s.edge_y * both(stride_) + s.diag_main * both(stride_ + 1) +
                          s.diag_anti * both(stride_ - 1);
      const Quad step = abs_of(around / diagonal_[i] - load_as<Quad>(x + kLanes * i));
      largest = max_of(largest, step);
    }
    store_as(change, largest);
  }

  int64_t at(int64_t y, int64_t x) const { return (y + 1) * stride_ + x + 1; }

  const Job& job_;
  const Weights weights_;
  const bool iterates_in_double_;
  Arena arena_;
  int64_t stride_;                      // of number_ and plane_, which have a frame of one pixel
  int64_t capacity_, column_capacity_;  // unknown pixels, and values of columns, there is room for
  int32_t* number_;                     // [h + 2, w + 2] of unknown pixels, -1 for the others
  double* plane_;                       // [h + 2, w + 2] a channel; 0 in the frame
  int32_t count_ = 0;                   // unknown pixels
  double* row_diagonal_[4];  // [w] of the matrix, by which rows there are above and below
  // Of each unknown pixel: where it is; the first column of its row and the length of its column of
  // the factor, a multiple of kLanes; where that begins in columns_.
  int32_t *pixel_, *first_, *reach_, *start_;  // [capacity + kLanes]
  double *inverse_, *diagonal_;                // [capacity] of the factor, of the matrix
  double *given_, *solution_;                  // [capacity + kLanes, kLanes] right sides, solutions
  double* columns_;                            // of the factor
  RowBuffers<double> buffers_{};
};

}  // namespace impute
}  // namespace rf
