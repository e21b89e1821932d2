// The device that the emulator pretends to be: the few functions of the CUDA runtime that host code
// asks it with, and profiles of real ones. Included by simt.h.
#pragma once

#include <cstddef>

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };

struct cudaFuncAttributes {
  size_t sharedSizeBytes;         // static; 0 as long as no block of the kernel has run
  int maxDynamicSharedSizeBytes;  // what a launch may ask for
};

cudaError_t cudaGetDevice(int* device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel);
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
const char* cudaGetErrorString(cudaError_t error);

namespace rf::simt {

struct DeviceProfile {
  const char* name;
  size_t shared_per_block;  // static and dynamic, with cudaFuncSetAttribute
};

const DeviceProfile& device();
// False if there is no such profile. Kernels lose what was set for them, as in a new process.
bool set_device(const char* name);
const char* device_names();  // separated by spaces
void forget_allowances();

// Most dynamic shared memory a launch of this kernel may have now.
size_t dynamic_limit(const void* kernel);
bool is_allowed_more(const void* kernel);  // cudaFuncSetAttribute was called for it

// Static shared memory of a kernel: the emulator learns it from the first block that ran.
bool static_shared_is_known(const void* kernel);
void learn_static_shared(const void* kernel, size_t bytes);

// Dry launches are checked as the driver does, but run only where that is needed to learn the
// kernel's static shared memory.
void set_dry(bool dry);
bool is_dry();

}  // namespace rf::simt
