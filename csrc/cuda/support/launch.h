// launch(kernel, grid, block, smem_bytes, stream, args...): the one way kernels are started, on
// nvcc an ordinary launch, in the host build (RF_SIMT) the emulator. Every file with __device__ or
// __global__ in it includes this.
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

}  // namespace rf
#endif

namespace rf {

// Shared memory, static and dynamic, that a kernel
// of the current device may use after allow_dynamic_shared.
inline rf_status shared_memory_limit(size_t* bytes) {
  int device = 0, limit = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error != cudaSuccess) {
    return fail(RF_CUDA_ERROR, "cannot ask the device for its shared memory: %s",
                cudaGetErrorString(error));
  }
  *bytes = static_cast<size_t>(limit);
  return RF_OK;
}

// Lets a kernel use all the dynamic shared memory that the device has for it. Without this, 48 KB
// less its static shared memory is the most. Always to the same size, never lowered: another thread
// may be about to launch the same kernel.
template <typename... Params>
rf_status allow_dynamic_shared(void (*kernel)(Params...), size_t smem_bytes) {
  const void* function = reinterpret_cast<const void*>(kernel);
  size_t limit = 0;
  const rf_status status = shared_memory_limit(&limit);
  if (status != RF_OK) return status;
  cudaFuncAttributes attributes{};
  cudaError_t error = cudaFuncGetAttributes(&attributes, function);
  const size_t most = limit - attributes.sharedSizeBytes;
  if (error == cudaSuccess && static_cast<size_t>(attributes.maxDynamicSharedSizeBytes) < most) {
    error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(most));
  }
  if (error != cudaSuccess) {
    return fail(RF_CUDA_ERROR, "cannot set a kernel's shared memory: %s",
                cudaGetErrorString(error));
  }
  if (smem_bytes <= most) return RF_OK;
  return fail(RF_INVALID_ARGUMENT,
              "cannot use %zu bytes of dynamic shared memory: this device has %zu", smem_bytes,
              most);
}

}  // namespace rf
