// One thread's solver: reads the masks and pixels of a group of systems, chooses how to solve each,
// solves, and writes the results.
#pragma once

#include <atomic>

#include "cpu/impute_linear/cg.h"
#include "cpu/impute_linear/chebyshev.h"
#include "cpu/impute_linear/image_io.h"
#include "cpu/impute_linear/list_sweeps.h"
#include "cpu/impute_linear/setup.h"

namespace rf {
namespace impute {

inline int32_t count_nonzero(const uint8_t* bytes, int64_t n) {
  int32_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += bytes[i] != 0;
  return count;
}

// a[i * kStep] = b[i * kStep] = mask[i] ? -1 : 0
template <int64_t kStep>
void write_flags(const uint8_t* __restrict__ mask, int64_t n, int8_t* __restrict__ a,
                 int8_t* __restrict__ b) {
  for (int64_t i = 0; i < n; ++i) {
    const int8_t flag = mask[i] != 0 ? -1 : 0;
    a[i * kStep] = flag, b[i * kStep] = flag;
  }
}

template <typename Layout>
class Worker {
  using Real = typename Layout::Real;

 public:
  // `ready`: this memory was laid out before in the same call, its constants are in place. A team
  // shares the worker: its methods are called by one thread, which hands out passes.
  Worker(const Job& job, const Plan& plan, void* memory, bool ready = false, Team team = {})
      : job_(job), plan_(plan), arena_(memory, Arena::kStaggered) {
    lay_out(&grid_, plan, team, &arena_);
    for (int thread = 0; thread < team.threads; ++thread) {
      RowBuffers<Real>& buffers = buffers_[thread];
      buffers.value_stride = Rows<Real>::row_length(job.w);
      buffers.values = arena_.template take<Real>(Layout::kSystems * buffers.value_stride);
      buffers.noise = arena_.template take<float>(job.w + kPhiloxSlack);
      buffers.narrow = arena_.template take<float>(job.w);
    }
    state_ = arena_.template take<uint8_t>(job.h * job.w);
    if (memory && !ready) fill_constants(&grid_);
  }
  int64_t bytes() const { return arena_.bytes(); }

  // How each system is to be solved.
  template <bool kCustom>
  void plan(const System* systems, SweepPlan plans[Layout::kSystems]) {
    for (int lane = 0; lane < Layout::kSystems; ++lane) read_mask(systems[lane], lane);
    flag_unknown<Layout>(&grid_);
    plan_sweeps<Layout, kCustom>(grid_, job_.tol, plans);
  }

  // Prepares for the channels of an image, unless it is to be solved by sweeps: then *sweeps says
  // how, and the result is false.
  template <bool kCustom>
  bool prepare_cycles(System system, SweepPlan* sweeps) {
    plan<kCustom>(&system, sweep_plans_);
    *sweeps = sweep_plans_[0];
    if (sweeps->use) return false;
    set_up<kCustom>();
    return true;
  }

  // Solves kSystems systems; `shared` says that the masks are those of the call before. plans [n]
  // holds what plan() said about each image before, if it was asked.
  template <bool kCustom>
  void solve(const System* systems, bool shared, const SweepPlan* plans) {
    if (!shared) {
      if (plans) {
        for (int lane = 0; lane < Layout::kSystems; ++lane) {
          const int64_t image = systems[lane].image;
          read_mask(systems[lane], lane);
          sweep_plans_[lane] = image < 0 ? SweepPlan{true, 0, 1} : plans[image];
        }
        flag_unknown<Layout>(&grid_);
      } else {
        plan<kCustom>(systems, sweep_plans_);
      }
      set_up<kCustom>();
    }
    Scaling scaling[Layout::kSystems];
    read_systems<Layout>(job_, systems, known_, &grid_, buffers_, any_sweeps_ && !use_list_,
                         scaling);
    V<Real> tolerance{};
    for (int lane = 0; lane < Layout::kVec; ++lane) {
      const Scaling& s = scaling[Layout::kIsLanes ? lane : 0];
      tolerance[lane] = static_cast<Real>(plan_.tolerance_factor * job_.tol * s.range * s.scale);
    }
    Outcome<Layout> outcome{};
    const int max_iter = static_cast<int>(job_.max_iter);
    if (any_sweeps_) {
      if constexpr (!Layout::kIsLanes) {
        if (use_list_) list_.start();
      }
      run_sweeps<Layout>(
          sweep_plans_, plan_.tolerance_factor * job_.tol, tolerance, max_iter, &outcome,
          [&](const V<Real>* omega, int total) { return sweep<kCustom>(omega, total); });
      if constexpr (!Layout::kIsLanes) {
        if (use_list_) list_.finish();
      }
    }
    if (any_cycles_) Solver<Layout, kCustom>(&grid_).run(cycles_, tolerance, max_iter, &outcome);
    bool any_empty = false;
    for (const int64_t empty : empty_) any_empty |= empty > 0;
    write_systems<Layout>(job_, systems, scaling, any_empty, &grid_, buffers_);
    for (int lane = 0; lane < Layout::kSystems; ++lane) {
      if (systems[lane].image < 0) continue;
      const Scaling& s = scaling[lane];
      const int64_t k = systems[lane].image * job_.c + systems[lane].channel;
      const double span = s.range * s.scale;
      const bool trivial = !(span > 0) || solvable_[lane] == 0;
      job_.iterations[k] = trivial ? 0 : static_cast<int32_t>(outcome.iterations[lane]);
      job_.residual[k] = trivial ? 0 : outcome.last_correction[lane] / span;
      job_.status[k] = !s.finite                                 ? RF_IMPUTE_NON_FINITE
                       : trivial || outcome.converged[lane] != 0 ? RF_IMPUTE_CONVERGED
                                                                 : RF_IMPUTE_NOT_CONVERGED;
      job_.empty[systems[lane].image] = empty_[lane];
    }
  }

 private:
  template <bool kCustom>
  void set_up() {
    any_sweeps_ = any_cycles_ = false;
    for (int lane = 0; lane < Layout::kVec; ++lane) {
      const bool use = sweep_plans_[lane % Layout::kSystems].use;
      cycles_[lane] = use ? 0 : -1;
      any_sweeps_ |= use, any_cycles_ |= !use;
    }
    if constexpr (!Layout::kIsLanes) {
      use_list_ = any_sweeps_ && list_.build(grid_.fine, solvable_[0]);
    }
    if (any_cycles_) set_up_levels<Layout, kCustom>(&grid_);
  }

  template <bool kCustom>
  V<Real> sweep(const V<Real>* omega, int total) {
    if constexpr (!Layout::kIsLanes) {
      if (use_list_) return list_.sweep(omega, total);
    }
    return sweep_images<Layout, kCustom>(grid_.fine, omega, total);
  }

  // Fills a lane's `removed` and `unknown` bytes and counts the pixels that nothing determines.
  void read_mask(System s, int lane) {
    Fine<Layout>& f = grid_.fine;
    const int64_t pixels = f.h * f.w;
    const bool used = s.image >= 0;
    const uint8_t* mask = used ? job_.mask_of(s.image) : nullptr;
    std::atomic<int64_t> all_removed{0};
    if (used) {
      grid_.team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
        int64_t count = 0;
        for (int64_t y = begin; y < end; ++y) count += count_nonzero(mask + y * f.w, f.w);
        all_removed += count;
      });
    }
    const int64_t removed = all_removed;
    int64_t empty = 0;
    const bool flood = used && !plan_.connected && removed > 0;
    if (flood) {
      for (int64_t i = 0; i < pixels; ++i) state_[i] = mask[i] != 0;
      empty = mark_unreachable(state_, f.h, f.w, plan_.weights[0]);
    } else if (removed == pixels) {
      empty = removed;
    }
    grid_.team.rows(f.h, f.n, [&](int64_t begin, int64_t end, int) {
      for (int64_t y = begin; y < end; ++y) {
        int8_t *removed_row = f.removed + y * f.stride, *unknown_row = f.unknown + y * f.stride;
        if constexpr (!Layout::kIsLanes) {
          memset(removed_row, -1, static_cast<size_t>(f.stride));
          memset(unknown_row, 0, static_cast<size_t>(f.stride));
        }
        constexpr int64_t kStep = Layout::kIsLanes ? Layout::kVec : 1;
        if (!used) {
          for (int64_t x = 0; x < f.w; ++x) {
            removed_row[x * kStep + lane] = -1, unknown_row[x * kStep + lane] = 0;
          }
          continue;
        }
        write_flags<kStep>(mask + y * f.w, f.w, removed_row + lane, unknown_row + lane);
        if (flood) {
          for (int64_t x = 0; x < f.w; ++x) {
            unknown_row[x * kStep + lane] = state_[y * f.w + x] == 1 ? -1 : 0;
          }
        } else if (empty > 0) {
          for (int64_t x = 0; x < f.w; ++x) unknown_row[x * kStep + lane] = 0;
        }
      }
    });
    empty_[lane] = empty;
    solvable_[lane] = removed - empty;
    known_[lane] = used ? pixels - removed : 0;
  }

  const Job& job_;
  const Plan& plan_;
  Arena arena_;
  Grid<Layout> grid_;
  RowBuffers<Real> buffers_[kMaxTeam];  // of each thread
  // Which systems are solved by sweeps alone and which by multigrid cycles.
  SweepPlan sweep_plans_[Layout::kSystems];
  M<Real> cycles_{};
  bool any_sweeps_ = false, any_cycles_ = false;
  // With Rows only.
  ListSweeper<Real> list_;
  bool use_list_ = false;
  uint8_t* state_;  // [h, w]
  int64_t empty_[Layout::kSystems] = {}, solvable_[Layout::kSystems] = {},
          known_[Layout::kSystems] = {};
};

}  // namespace impute
}  // namespace rf
