// Rank codes: the bounds of all rates from one selection, then the number of rates at which a value
// stays.
#include <cstring>
#include <type_traits>

#include "common/parallel.h"
#include "common/status.h"
#include "cpu/row_removal.h"

namespace {

// codes[i]: how many bounds leave x[i] alone. Bounds remove ever more, so that is the first rate
// that removes it. Vectors of values against one bound at a time, the counts in registers.
template <bool morf, typename V>
__attribute__((noinline)) void count_bounds(const V* x, int64_t f, const V* edges, int count,
                                            uint8_t* codes) {
  constexpr int kLanes = 32 / sizeof(V), kVectors = 4, kStep = kLanes * kVectors;
  typedef V Vector __attribute__((vector_size(32), aligned(sizeof(V)), may_alias));
  using Lane = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
  typedef Lane Mask __attribute__((vector_size(32)));
  int64_t i = 0;
  for (; i + kStep <= f; i += kStep) {
    Vector v[kVectors];
    Mask removed[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      v[k] = *reinterpret_cast<const Vector*>(x + i + k * kLanes);
      removed[k] = Mask{};
    }
    for (int j = 0; j < count; ++j) {
      const Vector edge = Vector{} + edges[j];
      for (int k = 0; k < kVectors; ++k)
        removed[k] += morf ? v[k] >= edge : v[k] <= edge;  // true is -1
    }
    Lane lanes[kStep];
    std::memcpy(lanes, removed, sizeof(lanes));
    for (int l = 0; l < kStep; ++l) codes[i + l] = static_cast<uint8_t>(count + lanes[l]);
  }
  for (; i < f; ++i) {
    int stays = 0;
    for (int j = 0; j < count; ++j) stays += !(morf ? x[i] >= edges[j] : x[i] <= edges[j]);
    codes[i] = static_cast<uint8_t>(stays);
  }
}

// Adds 1 where a value ties with a split bound and its hash lets it stay.
template <bool morf, typename V>
__attribute__((noinline)) void count_split(const V* x, const uint32_t* hashes, int64_t f, V edge,
                                           uint32_t hash, uint8_t* codes) {
  for (int64_t i = 0; i < f; ++i) {
    const bool stays = morf ? hashes[i] < hash : hashes[i] > hash;
    codes[i] = static_cast<uint8_t>(codes[i] + ((x[i] == edge) & stays));
  }
}

template <typename T>
void code_row(rf::RowRemoval<T>& row, const rf::RemovalPlan<T>& plan, uint64_t seed, int64_t sample,
              uint8_t* codes) {
  using V = typename rf::RowRemoval<T>::V;
  const rf::Bound<V>* bounds = row.find_bounds(plan);
  V edges[RF_MAX_RATES];
  for (int j = 0; j < plan.count; ++j) edges[j] = bounds[j].value;
  const bool morf = plan.order == RF_MORF;
  (morf ? count_bounds<true, V> : count_bounds<false, V>)(row.values(), plan.f, edges, plan.count,
                                                          codes);
  row.split_ties(
      plan, seed, sample, [&](int, int64_t i) { ++codes[i]; },
      [&](const rf::Bound<V>& b) {
        (morf ? count_split<true, V> : count_split<false, V>)(row.values(), row.hashes(), plan.f,
                                                              b.value, b.hash, codes);
      });
}

}  // namespace

extern "C" rf_status rf_rank_codes(const void* in, uint8_t* codes, rf_dtype dtype, int64_t n,
                                   int64_t f, const double* drops, int64_t ndrops, rf_rule rule,
                                   rf_order order, uint64_t seed, const int64_t* index,
                                   uint8_t* nan_flags, void* workspace, rf_stream) {
  if (n == 0 || f == 0) return RF_OK;
  if (const rf_status bad = rf::check_selection(f, drops, ndrops)) return bad;
  const bool known = rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const rf::RemovalPlan<T> plan(rule, order, f, drops, ndrops);
    const int64_t scratch = rf::RowRemoval<T>::scratch_bytes(f, ndrops);
    rf::parallel_for(n, rf::row_grain(f), [&](int64_t begin, int64_t end, int thread) {
      rf::RowRemoval<T> row(static_cast<unsigned char*>(workspace) + thread * scratch, f, ndrops);
      for (int64_t i = begin; i < end; ++i) {
        const bool nan = row.load_row(static_cast<const T*>(in) + i * f);
        if (nan_flags) nan_flags[i] = nan;
        code_row(row, plan, seed, index ? index[i] : i, codes + i * f);
      }
    });
  });
  return known ? RF_OK : rf::fail_dtype("rank_codes", dtype);
}

extern "C" int64_t rf_rank_codes_workspace_bytes(rf_dtype dtype, int64_t n, int64_t f,
                                                 int64_t ndrops) {
  int64_t bytes = 0;
  rf::dispatch_any(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bytes = rf::RowRemoval<T>::scratch_bytes(f, ndrops) * rf::plan_threads(n, rf::row_grain(f));
  });
  return bytes;
}
