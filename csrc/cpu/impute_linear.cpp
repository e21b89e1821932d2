// ROAD's noisy linear imputation: removed pixels become the weighted mean of their neighbours, all
// at once, by multigrid-preconditioned conjugate gradients. Method and accuracy:
// docs/imputation.md. Work is handed out by image (set-up shared by its channels), or by system
// when there are few images.
#include <algorithm>

#include "common/parallel.h"
#include "common/status.h"
#include "cpu/impute_linear/cg.h"
#include "cpu/impute_linear/image_io.h"
#include "cpu/impute_linear/setup.h"
#include "cpu/impute_linear/sparse.h"

namespace {

using namespace rf::impute;

// Small images fill vectors with one system per lane, large ones with pixels of a row.
constexpr int64_t kLanesMaxPixels = 64 * 64;

template <typename Layout>
class Worker {
  using Real = typename Layout::Real;

 public:
  // `ready`: this memory was laid out before in the same call, its constants are in place.
  Worker(const Job& job, const Plan& plan, void* memory, bool ready = false)
      : job_(job), plan_(plan), arena_(memory) {
    lay_out(&grid_, plan, &arena_);
    buffers_.value_stride = Rows<Real>::row_length(job.w);
    buffers_.values = arena_.template take<Real>(Layout::kSystems * buffers_.value_stride);
    buffers_.noise = arena_.template take<float>(job.w + rf::kPhiloxRowSlack);
    state_ = arena_.template take<uint8_t>(job.h * job.w);
    if (memory && !ready) fill_constants(&grid_);
  }
  int64_t bytes() const { return arena_.used(); }

  // Solves kSystems systems; `shared` says that the masks are those of the call before.
  template <typename In, typename Out, bool kCustom>
  void solve(const System* systems, bool shared) {
    if (!shared) {
      for (int lane = 0; lane < Layout::kSystems; ++lane) read_mask(systems[lane], lane);
      set_up<Layout, kCustom>(&grid_);
      if constexpr (!Layout::kIsLanes && !kCustom) is_sparse_ = sparse_.build(&grid_);
    }
    Scaling scaling[Layout::kSystems];
    read_systems<Layout, In>(job_, systems, &grid_, buffers_, scaling);
    V<Real> tolerance{};
    for (int lane = 0; lane < Layout::kVec; ++lane) {
      const Scaling& s = scaling[Layout::kIsLanes ? lane : 0];
      tolerance[lane] = static_cast<Real>(plan_.tolerance_factor * job_.tol * s.range * s.scale);
    }
    const Outcome<Layout> outcome = run<kCustom>(tolerance);
    write_systems<Layout, In, Out>(job_, systems, scaling, &grid_, buffers_);
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
  Outcome<Layout> run(V<Real> tolerance) {
    const int max_iter = static_cast<int>(job_.max_iter);
    if constexpr (!Layout::kIsLanes && !kCustom) {
      if (is_sparse_) return sparse_.run(tolerance[0], max_iter);
    }
    return Solver<Layout, kCustom>(&grid_).run(tolerance, max_iter);
  }

  // Fills a lane's `removed` and `unknown` bytes and counts the pixels that nothing determines.
  void read_mask(System s, int lane) {
    Fine<Layout>& f = grid_.fine;
    const int64_t pixels = f.h * f.w;
    const bool used = s.image >= 0;
    const uint8_t* mask = used ? job_.mask_of(s.image) : nullptr;
    int64_t removed = 0, empty = 0;
    if (used) {
      for (int64_t i = 0; i < pixels; ++i) removed += mask[i] != 0;
    }
    const bool flood = used && !plan_.connected && removed > 0;
    if (flood) {
      for (int64_t i = 0; i < pixels; ++i) state_[i] = mask[i] != 0;
      empty = mark_unreachable(state_, f.h, f.w, plan_.weights[0]);
    } else if (removed == pixels) {
      empty = removed;
    }
    for (int64_t y = 0; y < f.h; ++y) {
      int8_t *removed_row = f.removed + y * f.stride, *unknown_row = f.unknown + y * f.stride;
      if constexpr (!Layout::kIsLanes) {
        memset(removed_row, -1, static_cast<size_t>(f.stride));
        memset(unknown_row, 0, static_cast<size_t>(f.stride));
      }
      const uint8_t *m = used ? mask + y * f.w : nullptr, *s_row = state_ + y * f.w;
      const auto fill = [&](auto removed_at, auto solve_at) {
        int8_t* __restrict__ r = removed_row, * __restrict__ u = unknown_row;
        for (int64_t x = 0; x < f.w; ++x) {
          r[Layout::index(x, lane)] = static_cast<int8_t>(-removed_at(x));
          u[Layout::index(x, lane)] = static_cast<int8_t>(-solve_at(x));
        }
      };
      if (!used) {
        fill([](int64_t) { return 1; }, [](int64_t) { return 0; });
      } else if (flood) {
        fill([m](int64_t x) { return m[x] != 0; }, [s_row](int64_t x) { return s_row[x] == 1; });
      } else if (empty > 0) {
        fill([m](int64_t x) { return m[x] != 0; }, [](int64_t) { return 0; });
      } else {
        fill([m](int64_t x) { return m[x] != 0; }, [m](int64_t x) { return m[x] != 0; });
      }
    }
    empty_[lane] = empty;
    solvable_[lane] = removed - empty;
  }

  const Job& job_;
  const Plan& plan_;
  Arena arena_;
  Grid<Layout> grid_;
  RowBuffers<Real> buffers_;
  SparseSolver<Real> sparse_;  // used with Rows only
  bool is_sparse_ = false;
  uint8_t* state_;  // [h, w]
  int64_t empty_[Layout::kSystems] = {}, solvable_[Layout::kSystems] = {};
};

// Every thread's scratch, one after the other.
template <typename Layout>
int64_t thread_bytes(const Job& job, const Plan& plan) {
  return (Worker<Layout>(job, plan, nullptr).bytes() + 4095) / 4096 * 4096;
}

template <typename Layout, typename In, typename Out, bool kCustom>
void run_all(const Job& job, const Plan& plan, void* workspace) {
  constexpr int64_t kSystems = Layout::kSystems;
  const int64_t threads = rf_get_num_threads(), bytes = thread_bytes<Layout>(job, plan);
  // By image when that keeps all threads busy; a system's result is the same either way.
  const bool by_image = job.n >= 2 * threads * kSystems;
  const int64_t count = by_image ? job.n : job.n * job.c;
  const int64_t groups = (count + kSystems - 1) / kSystems;
  char* base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(workspace) + 63) / 64 * 64);
  uint8_t* ready = reinterpret_cast<uint8_t*>(base + threads * bytes);  // [threads]
  memset(ready, 0, static_cast<size_t>(threads));
  rf::parallel_for(groups, std::max<int64_t>(1, groups / (16 * threads)),
                   [&](int64_t begin, int64_t end, int thread) {
                     Worker<Layout> worker(job, plan, base + thread * bytes, ready[thread] != 0);
                     ready[thread] = 1;
                     for (int64_t group = begin; group < end; ++group) {
                       System systems[kSystems];
                       for (int64_t channel = 0; channel < (by_image ? job.c : 1); ++channel) {
                         for (int64_t lane = 0; lane < kSystems; ++lane) {
                           const int64_t k = group * kSystems + lane;
                           systems[lane] = k >= count ? System{-1, 0}
                                           : by_image ? System{k, channel}
                                                      : System{k / job.c, k % job.c};
                         }
                         worker.template solve<In, Out, kCustom>(systems, channel > 0);
                       }
                     }
                   });
}

template <typename In, typename Out>
void run_types(const Job& job, const Plan& plan, void* workspace) {
  const bool lanes = job.h * job.w <= kLanesMaxPixels;
  const auto run = [&](auto real, auto custom) {
    using Real = typename decltype(real)::type;
    if (lanes) {
      run_all<Lanes<Real>, In, Out, custom.value>(job, plan, workspace);
    } else {
      run_all<Rows<Real>, In, Out, custom.value>(job, plan, workspace);
    }
  };
  const bool in_double = std::is_same_v<In, double> || needs_double(plan, job.tol);
  if (in_double) {
    plan.custom ? run(rf::type_tag<double>{}, std::true_type{})
                : run(rf::type_tag<double>{}, std::false_type{});
  } else if constexpr (!std::is_same_v<In, double>) {
    plan.custom ? run(rf::type_tag<float>{}, std::true_type{})
                : run(rf::type_tag<float>{}, std::false_type{});
  }
}

}  // namespace

extern "C" int64_t rf_impute_linear_workspace_bytes(rf_dtype dtype, int64_t n, int64_t c, int64_t h,
                                                    int64_t w, double weight_main, double weight_y,
                                                    double weight_anti, double weight_x,
                                                    double tol) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return 0;
  const double weights[4] = {weight_main, weight_y, weight_anti, weight_x};
  const Plan plan = make_plan(h, w, weights);
  Job job{};
  job.h = h, job.w = w;
  const bool lanes = h * w <= kLanesMaxPixels,
             in_double = dtype == RF_FLOAT64 || needs_double(plan, tol);
  const int64_t bytes =
      in_double
          ? (lanes ? thread_bytes<Lanes<double>>(job, plan) : thread_bytes<Rows<double>>(job, plan))
          : (lanes ? thread_bytes<Lanes<float>>(job, plan) : thread_bytes<Rows<float>>(job, plan));
  return rf_get_num_threads() * (bytes + 1) + 64;
}

extern "C" rf_status rf_impute_linear(const void* x, const uint8_t* mask, void* out,
                                      rf_dtype in_dtype, rf_dtype out_dtype, int64_t n, int64_t c,
                                      int64_t h, int64_t w, int channels_last, int64_t mask_count,
                                      double weight_main, double weight_y, double weight_anti,
                                      double weight_x, double tol, int64_t max_iter,
                                      double empty_value, double noise, rf_impute_noise noise_kind,
                                      uint64_t seed, const int64_t* index, int32_t* iterations,
                                      double* residual, int32_t* status, int64_t* empty,
                                      void* workspace, rf_stream) {
  const double weights[4] = {weight_main, weight_y, weight_anti, weight_x};
  const rf_status ok = check_arguments(n, c, h, w, mask_count, weights, tol, max_iter);
  if (ok != RF_OK || n * c * h * w == 0) return ok;
  const Plan plan = make_plan(h, w, weights);
  const Job job{x,
                mask,
                out,
                in_dtype,
                out_dtype,
                n,
                c,
                h,
                w,
                channels_last != 0,
                mask_count == 1 ? 0 : h * w,
                tol,
                empty_value,
                noise,
                max_iter,
                noise_kind == RF_IMPUTE_GAUSSIAN,
                seed,
                index,
                iterations,
                residual,
                status,
                empty};
  bool known = false;
  dispatch_pair(in_dtype, out_dtype, [&](auto in, auto o) {
    known = true;
    run_types<typename decltype(in)::type, typename decltype(o)::type>(job, plan, workspace);
  });
  return known ? RF_OK : fail_pair(in_dtype, out_dtype);
}
