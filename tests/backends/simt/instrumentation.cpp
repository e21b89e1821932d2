// Called by the kernels of the _simt module. Its .cu files are built with the compiler's
// -fsanitize=thread and -fsanitize=bounds,alignment, but linked without their runtimes: these
// functions take their place, so every memory access, bad index and misaligned pointer in a kernel
// comes here, at a cost of a call and a comparison.
#include <cstdint>
#include <cstring>

#include "atomics.h"
#include "block.h"
#include "checks.h"
#include "shared.h"

namespace rf::simt {

namespace {

// Most accesses are to global memory or the stack.
[[maybe_unused]] inline __attribute__((always_inline)) void check(const void* address, size_t bytes,
                                                                  Access access, const void* code) {
  const size_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(arena);
  if (__builtin_expect(offset < kArenaBytes, 0)) check_shared(offset, bytes, access, code);
}

}  // namespace

void note_atomic([[maybe_unused]] const void* address, [[maybe_unused]] size_t bytes) {
#ifdef RF_SIMT_CHECKS
  check(address, bytes, Access::kAtomic, __builtin_return_address(0));
#endif
}

}  // namespace rf::simt

#ifdef RF_SIMT_CHECKS

using rf::simt::Access;

// ==== what -fsanitize=thread calls
#define RF_SIMT_HOOKS(bytes)                                                \
  void __tsan_read##bytes(void* p) {                                        \
    rf::simt::check(p, bytes, Access::kRead, __builtin_return_address(0));  \
  }                                                                         \
  void __tsan_write##bytes(void* p) {                                       \
    rf::simt::check(p, bytes, Access::kWrite, __builtin_return_address(0)); \
  }                                                                         \
  void __tsan_unaligned_read##bytes(void* p) { __tsan_read##bytes(p); }     \
  void __tsan_unaligned_write##bytes(void* p) { __tsan_write##bytes(p); }   \
  void __tsan_volatile_read##bytes(void* p) { __tsan_read##bytes(p); }      \
  void __tsan_volatile_write##bytes(void* p) { __tsan_write##bytes(p); }

extern "C" {

RF_SIMT_HOOKS(1)
RF_SIMT_HOOKS(2)
RF_SIMT_HOOKS(4)
RF_SIMT_HOOKS(8)
RF_SIMT_HOOKS(16)
void __tsan_read_range(void* p, unsigned long n) {
  rf::simt::check(p, n, Access::kRead, __builtin_return_address(0));
}
void __tsan_write_range(void* p, unsigned long n) {
  rf::simt::check(p, n, Access::kWrite, __builtin_return_address(0));
}
// Clang calls these instead of the plain functions.
void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
  rf::simt::check(from, n, Access::kRead, __builtin_return_address(0));
  rf::simt::check(to, n, Access::kWrite, __builtin_return_address(0));
  return memcpy(to, from, n);
}
void* __tsan_memmove(void* to, const void* from, unsigned long n) {
  rf::simt::check(from, n, Access::kRead, __builtin_return_address(0));
  rf::simt::check(to, n, Access::kWrite, __builtin_return_address(0));
  return memmove(to, from, n);
}
void* __tsan_memset(void* to, int value, unsigned long n) {
  rf::simt::check(to, n, Access::kWrite, __builtin_return_address(0));
  return memset(to, value, n);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Host code next to the kernels: guards of static locals, reference counts.
#define RF_SIMT_ATOMICS(bits, type)                                                              \
  type __tsan_atomic##bits##_load(const volatile type* p, int) { return __atomic_load_n(p, 5); } \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int) { __atomic_store_n(p, v, 5); } \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type v, int) {                          \
    return __atomic_fetch_add(p, v, 5);                                                          \
  }                                                                                              \
  type __tsan_atomic##bits##_fetch_sub(volatile type* p, type v, int) {                          \
    return __atomic_fetch_sub(p, v, 5);                                                          \
  }                                                                                              \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                           \
    return __atomic_exchange_n(p, v, 5);                                                         \
  }
RF_SIMT_ATOMICS(8, uint8_t)
RF_SIMT_ATOMICS(32, uint32_t)
RF_SIMT_ATOMICS(64, uint64_t)

// ==== what -fsanitize=bounds,alignment calls; layouts as in the compilers' ubsan_handlers.h
struct UbsanLocation {
  const char* file;
  uint32_t line, column;
};
struct UbsanType {
  uint16_t kind, info;
  char name[1];
};
struct UbsanBounds {
  UbsanLocation at;
  const UbsanType* array;
  const UbsanType* index;
};
struct UbsanPointer {
  UbsanLocation at;
  const UbsanType* type;
  unsigned char log_alignment, kind;
};

void __ubsan_handle_out_of_bounds(UbsanBounds* data, uintptr_t index) {
  rf::simt::fail_launch("out-of-range index %lld of %.60s at %.60s:%u",
                        static_cast<long long>(index), data->array->name,
                        rf::simt::base_name(data->at.file), data->at.line);
}
void __ubsan_handle_out_of_bounds_abort(UbsanBounds* data, uintptr_t index) {
  __ubsan_handle_out_of_bounds(data, index);
}
void __ubsan_handle_type_mismatch_v1(UbsanPointer* data, uintptr_t pointer) {
  rf::simt::fail_launch(
      "misaligned access of %.60s through %p, which needs alignment %d, at %.60s:%u",
      data->type->name, reinterpret_cast<void*>(pointer), 1 << data->log_alignment,
      rf::simt::base_name(data->at.file), data->at.line);
}
void __ubsan_handle_type_mismatch_v1_abort(UbsanPointer* data, uintptr_t pointer) {
  __ubsan_handle_type_mismatch_v1(data, pointer);
}

}  // extern "C"

#endif  // RF_SIMT_CHECKS
