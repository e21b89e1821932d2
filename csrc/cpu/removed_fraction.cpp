// The fraction of features whose code says they are removed at a rate.
#include "common/status.h"
#include "cpu/support/parallel.h"

extern "C" rf_status rf_removed_fraction(const uint8_t* codes, double* out, int64_t n, int64_t f,
                                         int64_t rate_index, rf_stream) {
  if (f == 0 && n > 0)
    return rf::fail(RF_INVALID_ARGUMENT, "samples without features have no fraction");
  if (n <= 0) return RF_OK;
  if (const rf_status bad = rf::check_not_null("removed_fraction", {codes, out})) return bad;
  const int limit = static_cast<int>(rate_index);
  rf::parallel_for(n, 1 + 262144 / std::max<int64_t>(f, 1), [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* row = codes + i * f;
      int64_t removed = 0;
      constexpr int64_t kBlock = 1 << 20;  // 32-bit counters vectorise
      for (int64_t first = 0; first < f; first += kBlock) {
        const int64_t last = std::min(f, first + kBlock);
        int32_t here = 0;
        for (int64_t p = first; p < last; ++p) here += row[p] <= limit;
        removed += here;
      }
      out[i] = static_cast<double>(removed) / static_cast<double>(f);
    }
  });
  return RF_OK;
}
