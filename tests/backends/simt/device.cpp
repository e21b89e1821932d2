#include "device.h"

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "shared.h"

namespace rf::simt {

namespace {

// Shared memory of a block after opting in: "Technical specifications per compute capability" of
// the CUDA programming guide. All have 1024 threads per block and 48 KB without opting in.
constexpr DeviceProfile kProfiles[] = {
    {"sm_75", 64 * 1024},  {"sm_80", 163 * 1024},  {"sm_86", 99 * 1024},
    {"sm_90", 227 * 1024}, {"sm_100", 227 * 1024}, {"sm_120", 99 * 1024},
};
constexpr int kDefaultProfile = 3;

struct Kernel {
  size_t static_bytes = 0;
  bool static_known = false;
  int allowance = -1;  // what cudaFuncSetAttribute set, or not
};

std::mutex mutex;  // ops are called from several threads
const DeviceProfile* profile = &kProfiles[kDefaultProfile];
std::map<const void*, Kernel> kernels;
bool dry = false;

size_t limit_of(const Kernel& kernel) {
  if (kernel.allowance >= 0) return static_cast<size_t>(kernel.allowance);
  return kSharedBytesDefault - kernel.static_bytes;
}

}  // namespace

const DeviceProfile& device() { return *profile; }

bool set_device(const char* name) {
  for (const DeviceProfile& candidate : kProfiles) {
    if (strcmp(candidate.name, name) != 0) continue;
    profile = &candidate;
    forget_allowances();
    return true;
  }
  return false;
}

const char* device_names() {
  static const std::string names = [] {
    std::string text;
    for (const DeviceProfile& p : kProfiles)
      text += (text.empty() ? "" : " ") + std::string(p.name);
    return text;
  }();
  return names.c_str();
}

void forget_allowances() {
  const std::lock_guard<std::mutex> lock(mutex);
  for (auto& entry : kernels) entry.second.allowance = -1;
}

size_t dynamic_limit(const void* kernel) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Kernel& known = kernels[kernel];
  const size_t limit = limit_of(known), room = profile->shared_per_block - known.static_bytes;
  return limit < room ? limit : room;  // an allowance may be older than what was learned since
}

bool is_allowed_more(const void* kernel) {
  const std::lock_guard<std::mutex> lock(mutex);
  return kernels[kernel].allowance >= 0;
}

bool static_shared_is_known(const void* kernel) {
  const std::lock_guard<std::mutex> lock(mutex);
  return kernels[kernel].static_known;
}

void learn_static_shared(const void* kernel, size_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  Kernel& known = kernels[kernel];
  known.static_known = true;
  if (bytes > known.static_bytes) known.static_bytes = bytes;
}

void set_dry(bool value) { dry = value; }
bool is_dry() { return dry; }

}  // namespace rf::simt

using namespace rf::simt;

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (attribute != cudaDevAttrMaxSharedMemoryPerBlockOptin || device != 0) {
    return cudaErrorInvalidValue;
  }
  *value = static_cast<int>(profile->shared_per_block);
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Kernel& known = kernels[kernel];
  attributes->sharedSizeBytes = known.static_bytes;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(limit_of(known));
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard<std::mutex> lock(mutex);
  Kernel& known = kernels[kernel];
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) + known.static_bytes > profile->shared_per_block) {
    return cudaErrorInvalidValue;
  }
  known.allowance = value;
  return cudaSuccess;
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "invalid argument";
}
