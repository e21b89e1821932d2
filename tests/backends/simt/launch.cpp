// Checks a launch as the driver would, runs its blocks and words its failures.
#include <cstdlib>
#include <mutex>
#include <string>

#include "simt.h"
#include "symbols.h"

namespace rf::simt {

namespace {

std::mutex one_launch_at_a_time;

rf_status check(const Launch& l) {
  const unsigned long long threads = 1ull * l.block.x * l.block.y * l.block.z;
  if (threads == 0 || l.block.x > 1024 || l.block.y > 1024 || l.block.z > 64 || threads > 1024) {
    return fail(RF_INVALID_ARGUMENT,
                "launch at %s:%d: a block of (%u, %u, %u) threads; allowed are 1 to 1024",
                base_name(l.file), l.line, l.block.x, l.block.y, l.block.z);
  }
  if (l.grid.x == 0 || l.grid.y == 0 || l.grid.z == 0 || l.grid.x > 0x7fffffffu ||
      l.grid.y > 65535 || l.grid.z > 65535) {
    return fail(
        RF_INVALID_ARGUMENT,
        "launch at %s:%d: a grid of (%u, %u, %u) blocks; allowed are 1 to (2^31 - 1, 65535, 65535)",
        base_name(l.file), l.line, l.grid.x, l.grid.y, l.grid.z);
  }
  const size_t limit = dynamic_limit(l.kernel);
  if (l.dynamic_bytes > limit) {
    return fail(
        RF_INVALID_ARGUMENT,
        "launch at %s:%d: %zu bytes of dynamic shared memory, but the kernel is allowed %zu; see "
        "allow_dynamic_shared",
        base_name(l.file), l.line, l.dynamic_bytes, limit);
  }
  return RF_OK;
}

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The status of a launch whose block `index` failed: what, where and how to see it again.
rf_status report(const Launch& launch, uint3 index) {
  const uint3 thread = simt::block.current->index;
  simt::block.current = nullptr;
  std::string line = source_line(failure_code());
  if (!line.empty()) line = " at " + line;
  return fail(shared_limit_exceeded() ? RF_INVALID_ARGUMENT : RF_INTERNAL_ERROR,
              "%s%.80s [kernel %.120s, block (%u, %u, %u), thread (%u, %u, %u), seed %llu, "
              "launched at %.60s:%d]",
              failure(), line.c_str(), kernel_name(launch.kernel).c_str(), index.x, index.y,
              index.z, thread.x, thread.y, thread.z, static_cast<unsigned long long>(get_seed()),
              base_name(launch.file), launch.line);
}

struct SeedFromEnvironment {
  SeedFromEnvironment() {
    const char* text = getenv("ROARFAST_SIMT_SEED");
    if (text != nullptr) set_seed(strtoull(text, nullptr, 10));
  }
} seed_from_environment;

}  // namespace

rf_status run(const Launch& launch) {
  const std::lock_guard<std::mutex> lock(one_launch_at_a_time);
  const rf_status status = check(launch);
  if (status != RF_OK || (is_dry() && static_shared_is_known(launch.kernel))) return status;
  set_shared_limit(is_allowed_more(launch.kernel) ? device().shared_per_block
                                                  : kSharedBytesDefault);

  // Blocks run one by one, from a seeded start and in a seeded
  // direction: no order is promised by hardware.
  const uint64_t blocks = 1ull * launch.grid.x * launch.grid.y * launch.grid.z;
  const uint64_t seed = get_seed();
  const uint64_t start = seed == 0 ? 0 : mix(seed) % blocks;
  const bool backwards = seed != 0 && (mix(seed + 1) & 1) != 0;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t b = (start + (backwards ? blocks - i : i)) % blocks;
    const uint3 index = {static_cast<unsigned>(b % launch.grid.x),
                         static_cast<unsigned>(b / launch.grid.x % launch.grid.y),
                         static_cast<unsigned>(b / launch.grid.x / launch.grid.y)};
    if (run_block(launch, index, mix(seed ^ mix(b)))) continue;
    return report(launch, index);
  }
  learn_static_shared(launch.kernel, static_shared_bytes());
  return RF_OK;
}

}  // namespace rf::simt
