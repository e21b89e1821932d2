// launch(kernel, grid, block, smem_bytes, stream, args...): the one way kernels are started, on
// nvcc an ordinary launch, in the host build (RF_SIMT) the emulator. Include this first in every
// csrc/cuda/*.cu.
#pragma once

#ifdef RF_SIMT
#include "simt.h"
#else
#include <cuda_runtime.h>

#include "common/status.h"

// Static shared memory of a kernel: RF_SHARED(float, tile, [32][33]); bounds-checked and poisoned
// on the host.
#define RF_SHARED(type, name, dims) __shared__ type name dims
// Dynamic shared memory, as many bytes as the launch asked for: RF_DYNAMIC_SHARED(float, tile);
#define RF_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char rf_dynamic_shared[]; \
  type* name = reinterpret_cast<type*>(rf_dynamic_shared)

namespace rf {

template <typename... Params, typename... Args>
rf_status launch(void (*kernel)(Params...), dim3 grid, dim3 block, size_t smem_bytes,
                 rf_stream stream, Args... args) {
  // clang-format off: it takes the launch apart
  kernel<<<grid, block, smem_bytes, static_cast<cudaStream_t>(stream)>>>(static_cast<Params>(args)...);
  // clang-format on
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return RF_OK;
  return fail(RF_CUDA_ERROR, "CUDA launch failed: %s", cudaGetErrorString(error));
}

// Lets a kernel use more than 48 KB of dynamic shared memory.
template <typename... Params>
rf_status allow_dynamic_shared(void (*kernel)(Params...), size_t smem_bytes) {
  if (smem_bytes <= 48 * 1024) return RF_OK;
  const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 static_cast<int>(smem_bytes));
  if (error == cudaSuccess) return RF_OK;
  return fail(RF_CUDA_ERROR, "cannot use %zu bytes of shared memory: %s", smem_bytes,
              cudaGetErrorString(error));
}

}  // namespace rf
#endif
