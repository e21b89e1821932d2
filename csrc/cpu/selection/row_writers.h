// Loops that turn bounds into masks and codes. Not inlined: GCC vectorises them reliably only where
// it sees nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "cpu/support/simd.h"

namespace rf {

// The lowest and the highest value of a row, and whether it has a NaN (which is neither).
template <typename V>
struct RowRange {
  V low, high;
  bool nan;
};

template <typename V>
__attribute__((noinline)) RowRange<V> row_range(const V* x, int64_t f) {
  constexpr int kLanes = 32 / sizeof(V), kVectors = 4, kStep = kLanes * kVectors;
  using Values = vector_t<V, 32>;
  using Lane = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
  using Mask = vector_t<Lane, 32>;
  constexpr V kFar = std::numeric_limits<V>::infinity();
  Values low[kVectors], high[kVectors];
  Mask nan[kVectors];
  for (int k = 0; k < kVectors; ++k) {
    low[k] = Values{} + kFar;
    high[k] = Values{} - kFar;
    nan[k] = Mask{};
  }
  int64_t i = 0;
  for (; i + kStep <= f; i += kStep) {
    for (int k = 0; k < kVectors; ++k) {
      const Values v = load_as<Values>(x + i + k * kLanes);
      low[k] = v < low[k] ? v : low[k];
      high[k] = v > high[k] ? v : high[k];
      nan[k] |= v != v;
    }
  }
  RowRange<V> range{kFar, -kFar, false};
  const auto add = [&](V lowest, V highest, bool is_nan) {
    range.low = lowest < range.low ? lowest : range.low;
    range.high = highest > range.high ? highest : range.high;
    range.nan |= is_nan;
  };
  for (int k = 0; k < kVectors; ++k) {
    for (int l = 0; l < kLanes; ++l) add(low[k][l], high[k][l], nan[k][l] != 0);
  }
  for (; i < f; ++i) add(x[i], x[i], x[i] != x[i]);
  return range;
}

template <bool morf, typename V>
__attribute__((noinline)) void compare_row(const V* x, int64_t f, V edge, uint8_t flip,
                                           uint8_t* mask) {
  int64_t i = 0;
  for (; i + 32 <= f; i += 32) {
    map_to_bytes(x + i, mask + i,
                 [=](auto v) { return ((morf ? v >= edge : v <= edge) & 1) ^ flip; });
  }
  for (; i < f; ++i) mask[i] = static_cast<uint8_t>(morf ? x[i] >= edge : x[i] <= edge) ^ flip;
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

// codes[i]: how many bounds leave x[i] alone. Vectors of values against one bound at a time, the
// counts in registers.
template <bool morf, typename V>
__attribute__((noinline)) void count_bounds(const V* x, int64_t f, const V* edges, int count,
                                            uint8_t* codes) {
  constexpr int kLanes = 32 / sizeof(V), kVectors = 4, kStep = kLanes * kVectors;
  using Values = vector_t<V, 32>;
  using Lane = std::conditional_t<sizeof(V) == 8, int64_t, int32_t>;
  using Mask = vector_t<Lane, 32>;
  int64_t i = 0;
  for (; i + kStep <= f; i += kStep) {
    Values v[kVectors];
    Mask removed[kVectors];
    for (int k = 0; k < kVectors; ++k) {
      v[k] = load_as<Values>(x + i + k * kLanes);
      removed[k] = Mask{};
    }
    for (int j = 0; j < count; ++j) {
      const V edge = edges[j];
      for (int k = 0; k < kVectors; ++k)
        removed[k] += morf ? v[k] >= edge : v[k] <= edge;  // true is -1
    }
    if constexpr (kStep == 32) {
      for (int k = 0; k < kVectors; ++k) removed[k] += count;
      pack_bytes(removed, codes + i);
    } else {
      Lane lanes[kStep];
      std::memcpy(lanes, removed, sizeof(lanes));
      for (int l = 0; l < kStep; ++l) codes[i + l] = static_cast<uint8_t>(count + lanes[l]);
    }
  }
  for (; i < f; ++i) {
    int stays = 0;
    for (int j = 0; j < count; ++j) stays += !(morf ? x[i] >= edges[j] : x[i] <= edges[j]);
    codes[i] = static_cast<uint8_t>(stays);
  }
}

// Adds to codes[i], where x[i] equals `value`, how many of the hashes that split these ties let it
// stay. hashes and codes of 32 features at a time; the hashes have room for whole groups of them.
template <bool morf, typename V>
__attribute__((noinline)) void count_splits(const V* x, const uint32_t* hashes, int64_t f, V value,
                                            const uint32_t* splits, int count, uint8_t* codes) {
  using Bytes = vector_t<uint8_t, 32>;
  // There are no unsigned comparisons below AVX-512: flipping the top bit makes them signed.
  const auto flip = [](uint32_t h) { return static_cast<int32_t>(h ^ 0x80000000u); };
  V values[32] = {};
  uint8_t rest[32] = {};
  for (int64_t i = 0; i < f; i += 32) {
    Ints h[4], stays[4];
    for (int k = 0; k < 4; ++k) {
      h[k] = load_as<Ints>(hashes + i + 8 * k) ^ flip(0);
      stays[k] = Ints{};
    }
    for (int j = 0; j < count; ++j) {
      const int32_t split = flip(splits[j]);
      for (int k = 0; k < 4; ++k) stays[k] -= morf ? h[k] < split : h[k] > split;
    }
    uint8_t added[32], tied[32];
    pack_bytes(stays, added);
    const bool whole = i + 32 <= f;
    if (!whole) {
      std::memcpy(values, x + i, (f - i) * sizeof(V));
      std::memcpy(rest, codes + i, f - i);
    }
    map_to_bytes(whole ? x + i : values, tied, [=](auto v) { return (v == value) & 255; });
    uint8_t* out = whole ? codes + i : rest;
    store_as(out, load_as<Bytes>(out) + (load_as<Bytes>(added) & load_as<Bytes>(tied)));
    if (!whole) std::memcpy(codes + i, rest, f - i);
  }
}

}  // namespace rf
