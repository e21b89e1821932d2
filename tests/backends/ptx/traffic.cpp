#include "traffic.h"

#include <algorithm>

namespace rf::ptx {
namespace {

bool has(uint32_t mask, int lane) { return ((mask >> lane) & 1) != 0; }

// Distinct bytes that lanes of one array touch, from their sorted offsets.
uint64_t distinct_bytes(const Place* places, uint32_t mask, const Array* array, int bytes) {
  uint64_t offsets[kLanes];
  int count = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (has(mask, l) && places[l].array == array) offsets[count++] = places[l].offset;
  }
  std::sort(offsets, offsets + count);
  return static_cast<uint64_t>(std::unique(offsets, offsets + count) - offsets) * bytes;
}

}  // namespace

// Arrays count as aligned to 256 bytes, which allocators of device memory promise and NumPy's does
// not. Stores go through the first-level cache.
void count_global(Warp& w, const Place* places, uint32_t mask, int bytes, bool write) {
  Machine& m = *w.block->machine;
  uint32_t left = mask;
  while (left) {
    Array* array = places[__builtin_ctz(left)].array;
    uint32_t here = 0;
    uint64_t seen[kLanes];
    int count = 0;
    for (int l = 0; l < kLanes; ++l) {
      if (!has(left, l) || places[l].array != array) continue;
      here |= 1u << l;
      const uint64_t sector = places[l].offset / kSectorBytes;
      if (std::find(seen, seen + count, sector) == seen + count) seen[count++] = sector;
    }
    left &= ~here;
    w.counters->sectors += static_cast<uint64_t>(count);
    w.counters->bytes += static_cast<uint64_t>(__builtin_popcount(here)) * bytes;
    if (array == nullptr) continue;  // a variable of the module
    ArrayTraffic& t = write ? array->store : array->load;
    const uint64_t distinct = distinct_bytes(places, here, array, bytes);
    ++t.requests;
    t.bytes += static_cast<uint64_t>(__builtin_popcount(here)) * bytes;
    t.sectors += static_cast<uint64_t>(count);
    t.ideal += (distinct + kSectorBytes - 1) / kSectorBytes;
    if (array->seen.empty())
      array->seen.resize((array->end - array->begin + kSectorBytes - 1) / kSectorBytes);
    const uint64_t tag = static_cast<uint64_t>(array->argument + 1) << 48;
    for (int i = 0; i < count; ++i) {
      const bool cached = !write && m.memory->l1().touch(tag | seen[i]);
      t.l2 += !cached;
      uint8_t& flags = array->seen[seen[i]];
      const uint8_t flag = write ? 2 : 1;
      t.unique += !(flags & flag);
      flags |= flag;
    }
  }
}

// Passes over 32 banks of 4 bytes: accesses of 8 and 16 bytes go by halves and quarters of the
// warp; in each, the bank with the most distinct words decides.
void count_shared(Warp& w, const Place* places, uint32_t mask, int bytes) {
  const int words = bytes <= 4 ? 1 : bytes / 4, group = kLanes / words;
  for (int first = 0; first < kLanes; first += group) {
    uint64_t seen[kLanes];
    int count = 0, per_bank[32] = {}, most = 0;
    for (int l = first; l < first + group; ++l) {
      if (!has(mask, l)) continue;
      for (int k = 0; k < words; ++k) {
        const uint64_t word = places[l].offset / 4 + k;
        if (std::find(seen, seen + count, word) != seen + count) continue;
        seen[count++] = word;
        most = std::max(most, ++per_bank[word % 32]);
      }
    }
    w.counters->wavefronts += static_cast<uint64_t>(most);
  }
  w.counters->bytes += static_cast<uint64_t>(__builtin_popcount(mask)) * bytes;
}

void count_atomic(Warp& w, const Place* places, uint32_t mask, int bytes) {
  int most = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (!has(mask, l)) continue;
    int same = 0;
    for (int k = 0; k < kLanes; ++k) same += has(mask, k) && places[k].host == places[l].host;
    most = std::max(most, same);
  }
  w.counters->wavefronts += static_cast<uint64_t>(most);
  w.counters->bytes += static_cast<uint64_t>(__builtin_popcount(mask)) * bytes;
}

// Local memory is interleaved by lanes: a request of all lanes is contiguous.
void count_local(Warp& w, uint32_t mask, int bytes) {
  const uint64_t asked = static_cast<uint64_t>(__builtin_popcount(mask)) * bytes;
  w.counters->bytes += asked;
  w.counters->sectors += (asked + kSectorBytes - 1) / kSectorBytes;
}

}  // namespace rf::ptx
