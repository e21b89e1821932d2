// Shared memory of the running block. Arrays live in one arena, poisoned at first
// use in every block, with red zones between them. They are real arrays,
// so sizeof, decay and references work as on the device; what checks them
// is compiled in (checks.cpp: every access and every index) or AddressSanitizer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "block.h"

namespace rf::simt {

constexpr size_t kSharedBytesDefault = 48 * 1024;  // what every kernel may use

// One RF_SHARED statement (of one template instantiation).
struct SharedSite {
  const char* name;
  size_t bytes;
  size_t alignment;
  uint32_t block_epoch = 0;  // first_epoch of the block that `address` belongs to
  void* address = nullptr;

  constexpr SharedSite(const char* name_, size_t bytes_, size_t alignment_)
      : name(name_), bytes(bytes_), alignment(alignment_) {}
};

void* allocate_shared(SharedSite& site);

inline void* shared_address(SharedSite& site) {
  return site.block_epoch == block.first_epoch ? site.address : allocate_shared(site);
}

void* dynamic_shared(size_t alignment);

void begin_block_memory(size_t dynamic_bytes);
const char* end_block_memory();  // null, or what was overwritten outside the arrays

// Where all shared memory is: 227 KB of arrays, and room for red zones around small ones.
constexpr size_t kArenaBytes = 512 * 1024;
extern unsigned char arena[kArenaBytes];
bool is_allocated(size_t offset, size_t bytes);
// "byte 12 of tile (4224 bytes)"
const char* describe_shared(size_t offset);

// Most shared memory, static and dynamic, that the running kernel may use.
void set_shared_limit(size_t bytes);
// Static shared memory of the block that ran last.
size_t static_shared_bytes();
// Set when a block used more static and dynamic memory than its kernel may.
bool shared_limit_exceeded();

}  // namespace rf::simt

#define RF_SHARED(type, name, dims)                                                     \
  struct rf_shared_layout_##name {                                                      \
    type value dims;                                                                    \
  };                                                                                    \
  static ::rf::simt::SharedSite rf_shared_site_##name(                                  \
      #name, sizeof(rf_shared_layout_##name::value), alignof(rf_shared_layout_##name)); \
  auto& name = *static_cast<decltype(rf_shared_layout_##name::value)*>(                 \
      ::rf::simt::shared_address(rf_shared_site_##name))

#define RF_DYNAMIC_SHARED(type, name) \
  type* name = static_cast<type*>(::rf::simt::dynamic_shared(alignof(type)))
