// The removal mask of one row whose values are loaded.
#pragma once

#include "cpu/row_removal.h"

namespace rf {

// Separate functions, not inlined: GCC vectorises these loops reliably only where it sees nothing
// else.
template <bool morf, typename V>
__attribute__((noinline)) void compare_row(const V* x, int64_t f, V edge, uint8_t flip,
                                           uint8_t* mask) {
  for (int64_t i = 0; i < f; ++i)
    mask[i] = static_cast<uint8_t>(morf ? x[i] >= edge : x[i] <= edge) ^ flip;
}

template <bool morf, typename V>
__attribute__((noinline)) void compare_row_and_hash(const V* x, const uint32_t* hashes, int64_t f,
                                                    V edge, uint32_t hash, uint8_t flip,
                                                    uint8_t* mask) {
  for (int64_t i = 0; i < f; ++i) {
    const bool beyond = morf ? x[i] > edge : x[i] < edge;
    const bool chosen = morf ? hashes[i] >= hash : hashes[i] <= hash;
    mask[i] = static_cast<uint8_t>(beyond | ((x[i] == edge) & chosen)) ^ flip;
  }
}

template <typename T>
void mask_row(RowRemoval<T>& row, const RemovalPlan<T>& plan, bool keep, uint64_t seed,
              int64_t sample, uint8_t* mask) {
  using V = typename RowRemoval<T>::V;
  const Bound<V>* bound = row.find_bounds(plan);
  const V* x = row.values();
  const bool morf = plan.order == RF_MORF;
  if (!bound->split) {
    const auto compare = morf ? compare_row<true, V> : compare_row<false, V>;
    compare(x, plan.f, bound->value, keep, mask);
    return;
  }
  const auto compare = morf ? compare_row_and_hash<true, V> : compare_row_and_hash<false, V>;
  row.split_ties(
      plan, seed, sample, [&](int, int64_t i) { mask[i] = keep; },
      [&](const Bound<V>& b) { compare(x, row.hashes(), plan.f, b.value, b.hash, keep, mask); });
}

}  // namespace rf
