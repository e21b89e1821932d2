// Stands in for the CUDA runtime library: objects that nvcc made are linked with this instead of
// libcudart. Only what csrc/ uses; a new function shows as an undefined symbol when the module is
// loaded. Compiled by nvcc, so that the toolkit's headers check the signatures.
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "runtime.h"

namespace {

using rf::ptx::Runtime;

rf::ptx::Dim3 dim(dim3 d) { return {d.x, d.y, d.z}; }

struct Configuration {
  dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local Configuration configuration;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_text;  // of the last error that was not success

// Runs `f`; what it throws becomes the last error.
template <typename F>
cudaError_t guarded(cudaError_t code, F f) {
  try {
    f();
    return cudaSuccess;
  } catch (const std::exception& e) {
    last_text = e.what();
    return last_error = code;
  }
}

}  // namespace

extern "C" {

// ---- what the host code of a .cu calls by itself

void** __cudaRegisterFatBinary(void* wrapper) {
  const uint8_t* data;
  memcpy(&data, static_cast<uint8_t*>(wrapper) + 8, sizeof(data));
  return reinterpret_cast<void**>(Runtime::get().load(data));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** module, const char* host_function, char*, const char* symbol,
                            int, uint3*, uint3*, dim3*, dim3*, int*) {
  Runtime::get().add_kernel(reinterpret_cast<rf::ptx::LoadedModule*>(module), host_function,
                            symbol);
}
// Variables of a module live in its PTX; the host's copies (cudaMemcpyToSymbol) are not supported.
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configuration.grid, *block = configuration.block, *shared = configuration.shared;
  *static_cast<void**>(stream) = configuration.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  rf::ptx::LoadedKernel* found = Runtime::get().find(host_function);
  if (found == nullptr) return last_error = cudaErrorInvalidDeviceFunction;
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t) {
  return guarded(cudaErrorLaunchFailure, [&] {
    Runtime::get().launch(*reinterpret_cast<rf::ptx::LoadedKernel*>(kernel), dim(grid), dim(block),
                          arguments, shared);
  });
}

// ---- what csrc/ calls

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : last_text.empty() ? "error" : last_text.c_str();
}
const char* cudaGetErrorName(cudaError_t) { return "cudaError"; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const rf::ptx::DeviceProfile profile = rf::ptx::device();
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = profile.shared_per_block, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = rf::ptx::kDefaultShared, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return *value = profile.shared_per_sm, cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      return *value = profile.sms, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = profile.arch / 10, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = profile.arch % 10, cudaSuccess;
    case cudaDevAttrWarpSize:
      return *value = rf::ptx::kLanes, cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = 1024, cudaSuccess;
    default:
      last_text = "the ptx backend does not know device attribute " + std::to_string(attribute);
      return last_error = cudaErrorInvalidValue;
  }
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_function) {
  rf::ptx::LoadedKernel* kernel = Runtime::get().find(host_function);
  if (kernel == nullptr) return last_error = cudaErrorInvalidDeviceFunction;
  return guarded(cudaErrorInvalidValue, [&] {
    *attributes = {};
    attributes->sharedSizeBytes = static_cast<size_t>(kernel->parsed().shared_bytes);
    attributes->localSizeBytes = static_cast<size_t>(kernel->parsed().local_bytes);
    attributes->maxDynamicSharedSizeBytes = kernel->allowed_dynamic();
    const int bound = kernel->parsed().max_threads;
    attributes->maxThreadsPerBlock = bound ? bound : 1024;
    attributes->ptxVersion = attributes->binaryVersion = RF_PTX_ARCH;
  });
}

cudaError_t cudaFuncSetAttribute(const void* host_function, cudaFuncAttribute attribute,
                                 int value) {
  rf::ptx::LoadedKernel* kernel = Runtime::get().find(host_function);
  if (kernel == nullptr) return last_error = cudaErrorInvalidDeviceFunction;
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  return guarded(cudaErrorInvalidValue, [&] {
    const int most = rf::ptx::device().shared_per_block - kernel->parsed().shared_bytes;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value > most)
      throw rf::ptx::Fault("invalid argument: " + std::to_string(value) +
                           " bytes of dynamic shared memory, at most " + std::to_string(most));
    kernel->dynamic_allowance = value;
  });
}

}  // extern "C"
