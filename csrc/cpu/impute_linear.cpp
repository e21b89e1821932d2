// ROAD's noisy linear imputation: removed pixels become the weighted mean of their neighbours, all
// at once: directly where that is cheap, else by sweeps or by multigrid-preconditioned conjugate
// gradients. Method and accuracy: docs/imputation.md. Work is handed out by image (set-up shared by
// its channels), or by system when there are few images; threads share large images.
#include <algorithm>

#include "common/status.h"
#include "cpu/impute_linear/direct.h"
#include "cpu/impute_linear/worker.h"
#include "cpu/support/parallel.h"

namespace {

using namespace rf::impute;

Team team_for(const Job& job) {
  const int64_t pixels = job.h * job.w, threads = rf_get_num_threads();
  const bool worth = pixels >= kSharedMinPixels || job.n * job.c < 2 * threads;
  const bool enough = threads <= kMaxTeam && threads * kSharedPixelsPerThread <= pixels;
  return {worth && enough ? static_cast<int>(threads) : 1};
}

// Every thread's scratch, one after the other: for the direct solver, and then for iterating.
template <typename Layout>
int64_t thread_bytes(const Job& job, const Plan& plan) {
  int64_t bytes = Worker<Layout>(job, plan, nullptr).bytes();
  if (DirectSolver::fits(job, plan)) {
    bytes = std::max(bytes, DirectSolver(job, plan, nullptr).bytes());
  }
  return (bytes + 4095) / 4096 * 4096;
}

// Solves what is solved directly; returns how many images are left, and which, in images [n].
int64_t solve_directly(const Job& job, const Plan& plan, char* base, int64_t bytes,
                       int64_t* images) {
  const int64_t threads = rf_get_num_threads(),
                grain = std::max<int64_t>(1, job.n / (16 * threads));
  std::fill(images, images + job.n, 0);
  if (DirectSolver::fits(job, plan)) {
    rf::parallel_for(job.n, grain, [&](int64_t begin, int64_t end, int thread) {
      DirectSolver solver(job, plan, base + thread * bytes);
      for (int64_t i = begin; i < end; ++i) images[i] = solver.solve(i) ? -1 : 0;
    });
  }
  int64_t left = 0;
  for (int64_t i = 0; i < job.n; ++i) {
    if (images[i] == 0) images[left++] = i;
  }
  return left;
}

template <typename Layout>
int64_t scratch_bytes(const Job& job, const Plan& plan) {
  const int64_t apart = rf_get_num_threads() * thread_bytes<Layout>(job, plan),
                shared = Worker<Layout>(job, plan, nullptr, false, team_for(job)).bytes();
  return std::max(apart, (shared + 4095) / 4096 * 4096);
}

// Solves images that need cycles one after the other, all threads on each; returns how many of the
// n images are left, and which, and in plans how.
template <typename Layout, bool kCustom>
int64_t solve_shared(const Job& job, const Plan& plan, Team team, char* base, int64_t* images,
                     int64_t n, SweepPlan* plans) {
  static_assert(Layout::kSystems == 1);
  Worker<Layout> worker(job, plan, base, false, team);
  int64_t left = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t image = images[k];
    if (!worker.template prepare_cycles<kCustom>({image, 0}, plans + image)) {
      images[left++] = image;
      continue;
    }
    for (int64_t channel = 0; channel < job.c; ++channel) {
      const System system{image, channel};
      worker.template solve<kCustom>(&system, true, nullptr);
    }
  }
  return left;
}

// Orders images [n] by how many of their pixels are removed: lanes with fewer wait for those with
// more. counts: [job.n].
void sort_by_removed(const Job& job, int64_t n, int64_t* images, int64_t* counts) {
  if (job.mask_stride == 0) return;
  bool equal = true;
  for (int64_t k = 0; k < n; ++k) {
    counts[images[k]] = count_nonzero(job.mask_of(images[k]), job.h * job.w);
    equal &= counts[images[k]] == counts[images[0]];
  }
  if (equal) return;
  std::sort(images, images + n, [&](int64_t a, int64_t b) {
    return counts[a] != counts[b] ? counts[a] < counts[b] : a < b;
  });
}

template <typename Layout, bool kCustom>
void run_all(const Job& job, const Plan& plan, void* workspace) {
  constexpr int64_t kSystems = Layout::kSystems;
  const int64_t threads = rf_get_num_threads(), bytes = thread_bytes<Layout>(job, plan);
  char* base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(workspace) + 63) / 64 * 64);
  SweepPlan* const plans =
      reinterpret_cast<SweepPlan*>(base + scratch_bytes<Layout>(job, plan));  // [n]
  int64_t* images = reinterpret_cast<int64_t*>(plans + job.n);                // [n]
  int64_t* const ordered = images + job.n;                                    // [n]
  uint8_t* const ready = reinterpret_cast<uint8_t*>(ordered + job.n);         // [threads]
  memset(ready, 0, static_cast<size_t>(threads));

  int64_t n = solve_directly(job, plan, base, bytes, images);
  bool planned = false;
  if constexpr (!Layout::kIsLanes) {
    const Team team = team_for(job);
    planned = team.threads > 1;
    if (planned) n = solve_shared<Layout, kCustom>(job, plan, team, base, images, n, plans);
  }
  if (n == 0) return;
  // By image when that keeps all threads busy; a system's result is the same either way.
  const bool by_image = n >= 2 * threads * kSystems;
  const int64_t count = by_image ? n : n * job.c;
  const int64_t groups = (count + kSystems - 1) / kSystems;
  const int64_t grain = std::max<int64_t>(1, groups / (16 * threads));

  // Lanes that need cycles hold up lanes that do not, so where both kinds occur groups of one kind
  // are formed. That does not change results: each system is solved as if it were alone.
  if constexpr (Layout::kIsLanes) {
    if (by_image) sort_by_removed(job, n, images, ordered);
    bool sorted = false;
    const auto plan_groups = [&](int64_t begin, int64_t end, int thread) {
      Worker<Layout> worker(job, plan, base + thread * bytes, ready[thread] != 0);
      ready[thread] = 1;
      for (int64_t group = begin; group < end; ++group) {
        System systems[kSystems];
        SweepPlan found[kSystems];
        for (int64_t lane = 0; lane < kSystems; ++lane) {
          const int64_t k = group * kSystems + lane;
          systems[lane] = {k < n ? images[k] : -1, 0};
        }
        worker.template plan<kCustom>(systems, found);
        for (int64_t lane = 0; lane < kSystems; ++lane) {
          if (systems[lane].image >= 0) plans[systems[lane].image] = found[lane];
        }
      }
    };
    // Mostly a batch is of one kind. Three groups tell, and planning twice is spared.
    for (const int64_t group : {int64_t{0}, groups / 2, groups - 1}) {
      if (!by_image) break;
      plan_groups(group, group + 1, 0);
      for (int64_t k = group * kSystems; k < std::min(n, (group + 1) * kSystems); ++k) {
        sorted |= plans[images[k]].use != plans[images[0]].use;
      }
    }
    if (sorted) {
      rf::parallel_for(groups, grain, plan_groups);
      int64_t next = 0;
      for (const bool use : {true, false}) {
        for (int64_t k = 0; k < n; ++k) {
          if (plans[images[k]].use == use) ordered[next++] = images[k];
        }
      }
      images = ordered;
    }
    planned = sorted;
  }
  // A piece of work is a group with all its channels; of the last groups, which decide how long
  // some threads wait for the others, a channel.
  const int64_t channels = by_image ? job.c : 1;
  const int64_t whole = threads > 1 ? std::max<int64_t>(0, groups - threads) : groups;
  const int64_t pieces = whole + (groups - whole) * channels;
  rf::parallel_for(pieces, grain, [&](int64_t begin, int64_t end, int thread) {
    Worker<Layout> worker(job, plan, base + thread * bytes, ready[thread] != 0);
    ready[thread] = 1;
    int64_t prepared = -1;  // the image whose mask the worker has set up
    for (int64_t piece = begin; piece < end; ++piece) {
      const bool all = piece < whole;
      const int64_t group = all ? piece : whole + (piece - whole) / channels;
      const int64_t first = all ? 0 : (piece - whole) % channels;
      for (int64_t channel = first; channel < (all ? channels : first + 1); ++channel) {
        System systems[kSystems];
        for (int64_t lane = 0; lane < kSystems; ++lane) {
          const int64_t k = group * kSystems + lane;
          systems[lane] = k >= count ? System{-1, 0}
                          : by_image ? System{images[k], channel}
                                     : System{images[k / job.c], k % job.c};
        }
        const bool shared = systems[0].image == prepared && (by_image || kSystems == 1);
        worker.template solve<kCustom>(systems, shared, planned ? plans : nullptr);
        prepared = systems[0].image;
      }
    }
  });
}

// f(type_tag<Layout>, custom) for the way a job is solved. Four are compiled: other weights than
// the default ones are rare enough to be solved in double, pixels of a row at a time.
template <typename F>
void dispatch_way(const Plan& plan, rf_dtype dtype, double tol, F&& f) {
  if (plan.custom) {
    f(rf::type_tag<Rows<double>>{}, std::true_type{});
  } else if (dtype == RF_FLOAT64 || needs_double(plan, tol)) {
    f(rf::type_tag<Rows<double>>{}, std::false_type{});
  } else if (plan.size[0].h * plan.size[0].w <= kLanesMaxPixels) {
    f(rf::type_tag<Lanes<float>>{}, std::false_type{});
  } else {
    f(rf::type_tag<Rows<float>>{}, std::false_type{});
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
  job.n = n, job.c = c, job.h = h, job.w = w;
  int64_t bytes = 0;
  dispatch_way(plan, dtype, tol, [&](auto layout, auto) {
    bytes = scratch_bytes<typename decltype(layout)::type>(job, plan);
  });
  const int64_t per_image = sizeof(SweepPlan) + 2 * sizeof(int64_t);
  return bytes + rf_get_num_threads() + n * per_image + 64;
}

extern "C" rf_status rf_impute_linear(const void* x, const uint8_t* mask, void* out,
                                      rf_dtype in_dtype, rf_dtype out_dtype, int64_t n, int64_t c,
                                      int64_t h, int64_t w, rf_layout layout, int64_t mask_count,
                                      double weight_main, double weight_y, double weight_anti,
                                      double weight_x, double tol, int64_t max_iter,
                                      double empty_value, double noise, rf_impute_noise noise_kind,
                                      uint64_t seed, const int64_t* index, int32_t* iterations,
                                      double* residual, int32_t* status, int64_t* empty,
                                      void* workspace, rf_stream) {
  const double weights[4] = {weight_main, weight_y, weight_anti, weight_x};
  const rf_status ok = check_arguments(n, c, h, w, mask_count, weights, tol, max_iter);
  if (ok != RF_OK || n * c * h * w == 0) return ok;
  if (const rf_status bad = rf::check_not_null(
          "impute_linear", {x, mask, out, iterations, residual, status, empty, workspace})) {
    return bad;
  }
  PixelRows rows;
  if (!find_pixel_rows(in_dtype, out_dtype, &rows)) return fail_pair(in_dtype, out_dtype);
  const Plan plan = make_plan(h, w, weights);
  const Job job{x,
                mask,
                out,
                rows,
                n,
                c,
                h,
                w,
                layout == RF_NHWC,
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
  dispatch_way(plan, in_dtype, tol, [&](auto layout, auto custom) {
    run_all<typename decltype(layout)::type, custom.value>(job, plan, workspace);
  });
  return RF_OK;
}
