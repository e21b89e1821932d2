// Runs CUDA kernels on the host: what csrc/cuda/support/launch.h includes instead of the CUDA
// runtime when RF_SIMT is defined. See README.md in this folder.
#pragma once

#include "atomics.h"
#include "block.h"
#include "common/status.h"
#include "device.h"
#include "intrinsics.h"
#include "shared.h"
#include "vector_types.h"
#include "warp.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
constexpr int warpSize = 32;

[[noreturn]] inline void __trap() { rf::simt::fail_launch("__trap()"); }

namespace rf {

namespace simt {

// A stream that knows the statement it was passed in:
// launches are named in messages by where they are.
struct StreamAt {
  rf_stream stream;
  const char* file;
  int line;
  StreamAt(rf_stream s, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : stream(s), file(f), line(l) {}
};

rf_status run(const Launch& launch);

}  // namespace simt

// As on the device, but the kernel has run when this returns, and its mistakes are in the status.
template <typename... Params, typename... Args>
rf_status launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t smem_bytes,
                 simt::StreamAt stream, Args... args) {
  const auto call = [&] { kernel(static_cast<Params>(args)...); };
  simt::Launch what;
  what.run_thread = [](const void* closure) { (*static_cast<const decltype(call)*>(closure))(); };
  what.kernel_and_arguments = &call;
  what.kernel = reinterpret_cast<const void*>(kernel);
  what.grid = grid;
  what.block = block;
  what.dynamic_bytes = smem_bytes;
  what.file = stream.file;
  what.line = stream.line;
  return simt::run(what);
}

}  // namespace rf
