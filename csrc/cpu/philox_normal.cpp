// Standard normals keyed by (seed, sample, draw, feature). Work is cut into runs of blocks of one
// sample; within a run, kLanes blocks go through Philox and Box-Muller together, so that the
// compiler vectorises both.
#include "common/philox_normal.h"

#include <algorithm>
#include <cstring>

#include "common/philox.h"
#include "cpu/support/parallel.h"

namespace {

constexpr int kLanes = 16;
constexpr int64_t kRunBlocks =
    1024;  // 4096 normals: about 20 us, far above the cost of handing out a run

// The 4 * kLanes normals of the blocks first, first + 1, ...
void lane_normals(uint64_t seed, int64_t sample, int64_t first, rf::PhiloxDomain domain,
                  float* out) {
  uint32_t words[4][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const rf::Philox4 block = rf::philox_block(seed, sample, first + lane, domain);
    for (int k = 0; k < 4; ++k) words[k][lane] = block.w[k];
  }
  float normals[4][kLanes];
  for (int half = 0; half < 4; half += 2) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float radius = sqrtf(-2.0f * rf::log_uniform(words[half][lane] >> 8));
      float cosine, sine;
      rf::cos_sin_turn(words[half + 1][lane] >> 8, &cosine, &sine);
      normals[half][lane] = radius * cosine;
      normals[half + 1][lane] = radius * sine;
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < 4; ++k) out[4 * lane + k] = normals[k][lane];
  }
}

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
      for (int64_t block = start; block < stop; block += kLanes) {
        float normals[4 * kLanes];
        lane_normals(key, index[i], draw * blocks + block, where, normals);
        const int64_t first = 4 * block,
                      last = std::min(features, std::min(4 * stop, first + 4 * kLanes));
        std::memcpy(row + first, normals, static_cast<size_t>(last - first) * sizeof(float));
      }
    }
  });
  return RF_OK;
}
