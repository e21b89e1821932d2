// Standard normals keyed by (seed, sample, draw, feature), in runs of blocks of one sample.
#include "common/philox_normal.h"

#include <algorithm>
#include <cstring>

#include "cpu/support/parallel.h"
#include "cpu/support/philox_vec.h"

namespace {

// 4096 normals: microseconds, far above the cost of handing out a run.
constexpr int64_t kRunBlocks = 1024;

}  // namespace

extern "C" rf_status rf_philox_normal(const int64_t* index, float* out, int64_t n, int64_t features,
                                      int64_t seed, int64_t draw, int64_t domain, rf_stream) {
  const rf_status status = rf::check_philox_normal(index, out, n, features, draw, domain);
  if (status != RF_OK || n == 0 || features == 0) return status;
  const int64_t blocks = rf::normal_blocks(features), runs = (blocks + kRunBlocks - 1) / kRunBlocks;
  const auto key = static_cast<uint64_t>(seed);
  const auto where = static_cast<rf::PhiloxDomain>(domain);
  rf::parallel_for(n * runs, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t i = item / runs, start = item % runs * kRunBlocks;
      const int64_t stop = std::min(blocks, start + kRunBlocks);
      float* row = out + i * features;
      for (int64_t block = start; block < stop; block += rf::kPhiloxNormals / 4) {
        const int64_t first = 4 * block,
                      last = std::min(features, std::min(4 * stop, first + rf::kPhiloxNormals));
        if (last - first == rf::kPhiloxNormals) {
          rf::philox_normals(key, index[i], draw * blocks + block, where, row + first);
          continue;
        }
        float normals[rf::kPhiloxNormals];
        rf::philox_normals(key, index[i], draw * blocks + block, where, normals);
        std::memcpy(row + first, normals, static_cast<size_t>(last - first) * sizeof(float));
      }
    }
  });
  return RF_OK;
}
