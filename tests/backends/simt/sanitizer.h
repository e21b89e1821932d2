// AddressSanitizer must know which stack is in use and which memory is off limits. Nothing outside
// of the _simt_asan module, which defines RF_SIMT_ASAN.
#pragma once

#include <cstddef>

#ifdef RF_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace rf::simt {

struct SanitizerFiber {
  const char* bottom = nullptr;
  const char* top = nullptr;
};

// Before a switch to the stack [bottom, top). Null `save`: the stack we leave is never returned to.
inline void start_switch([[maybe_unused]] void** save, [[maybe_unused]] const char* bottom,
                         [[maybe_unused]] const char* top) {
#ifdef RF_SIMT_ASAN
  __sanitizer_start_switch_fiber(save, bottom, static_cast<size_t>(top - bottom));
#endif
}

// After arriving on a stack; `left` receives the one we came from.
inline void finish_switch([[maybe_unused]] void* saved, [[maybe_unused]] SanitizerFiber* left) {
#ifdef RF_SIMT_ASAN
  const void* bottom;
  size_t bytes;
  __sanitizer_finish_switch_fiber(saved, &bottom, &bytes);
  if (left != nullptr) {
    left->bottom = static_cast<const char*>(bottom);
    left->top = left->bottom + bytes;
  }
#endif
}

inline void poison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#ifdef RF_SIMT_ASAN
  __asan_poison_memory_region(p, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* p, [[maybe_unused]] size_t bytes) {
#ifdef RF_SIMT_ASAN
  __asan_unpoison_memory_region(p, bytes);
#endif
}

}  // namespace rf::simt
