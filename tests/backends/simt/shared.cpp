#include "shared.h"

#include <cstdio>
#include <cstring>

#include "sanitizer.h"

namespace rf::simt {

alignas(4096) unsigned char arena[kArenaBytes];

namespace {

constexpr size_t kRedZone = 64;
constexpr size_t kLeftMargin = 8192;  // so that far negative indices still land in the arena
constexpr unsigned char kCanary = 0xC5;

struct Array {
  const char* name;
  size_t offset, bytes;
};
constexpr int kMaxArrays = 256;

unsigned char allocated[kArenaBytes];  // 1: belongs to an array of the running block
Array arrays[kMaxArrays];
int array_count;
size_t used;         // of the arena, red zones included
size_t array_bytes;  // as the device counts
size_t dynamic_size;
unsigned char* dynamic_address;
unsigned char fill;
size_t limit = kSharedBytesDefault;
bool exceeded;
bool ready = false;

unsigned char* allocate(const char* name, size_t bytes, size_t alignment) {
  array_bytes += bytes;
  if (array_bytes > limit) {
    exceeded = true;
    fail_launch("%zu bytes of shared memory, of at most %zu%s", array_bytes, limit,
                limit == kSharedBytesDefault ? " without allow_dynamic_shared" : "");
  }
  // Aligned as its type asks and not more, as on the device: a float4 load from a float array is
  // found out. (AddressSanitizer can only guard the start of an array at multiples of 8.)
#ifdef RF_SIMT_ASAN
  const size_t step = alignment < 8 ? 8 : alignment;
#else
  const size_t step = alignment;
#endif
  size_t offset = (used + kRedZone + 2 * step - 1) / (2 * step) * (2 * step) + step;
  if (array_count == kMaxArrays || offset + bytes + kRedZone > kArenaBytes) {
    fail_launch("more shared arrays in a block than the emulator has room for");
  }
  unpoison(arena + offset, bytes);
  memset(arena + offset, fill, bytes);
  memset(allocated + offset, 1, bytes);
  arrays[array_count++] = {name, offset, bytes};
  used = offset + bytes;
  return arena + offset;
}

}  // namespace

void set_shared_limit(size_t bytes) {
  limit = bytes;
  exceeded = false;
}
size_t static_shared_bytes() {
  return array_bytes - (dynamic_address != nullptr ? dynamic_size : 0);
}
bool shared_limit_exceeded() { return exceeded; }

void begin_block_memory(size_t dynamic_bytes) {
  if (!ready) {
    memset(arena, kCanary, kArenaBytes);
    poison(arena, kArenaBytes);
    ready = true;
  }
  used = kLeftMargin;
  array_bytes = 0;
  array_count = 0;
  // NaN in every float format, or huge: a maximum ignores NaN, a comparison may ignore huge.
  fill = (next_random() & 1) != 0 ? 0xFF : 0x7F;
  dynamic_size = dynamic_bytes;
  dynamic_address = nullptr;
}

void* allocate_shared(SharedSite& site) {
  site.address = allocate(site.name, site.bytes, site.alignment);
  site.block_epoch = block.first_epoch;
  return site.address;
}

void* dynamic_shared(size_t alignment) {
  if (alignment > 16)
    fail_launch("dynamic shared memory is aligned to 16 bytes, the type asks for %zu", alignment);
  if (dynamic_address == nullptr)
    dynamic_address = allocate("dynamic shared memory", dynamic_size, 16);
  return dynamic_address;
}

const char* end_block_memory() {
  static char text[160];
  const char* error = nullptr;
  unpoison(arena, used + kRedZone);
  size_t begin = kLeftMargin;
  for (int i = 0; i <= array_count; ++i) {
    const size_t end = i < array_count ? arrays[i].offset : used + kRedZone;
    for (size_t j = begin; j < end; ++j) {
      if (arena[j] == kCanary) continue;
      if (error == nullptr) {
        snprintf(text, sizeof(text), "out-of-range store to shared memory, next to %s",
                 describe_shared(j));
        error = text;
      }
      arena[j] = kCanary;
    }
    if (i < array_count) begin = end + arrays[i].bytes;
  }
  for (int i = 0; i < array_count; ++i) {
    memset(arena + arrays[i].offset, kCanary, arrays[i].bytes);
    memset(allocated + arrays[i].offset, 0, arrays[i].bytes);
  }
  poison(arena, used + kRedZone);
  return error;
}

bool is_allocated(size_t offset, size_t bytes) {
  return offset + bytes <= kArenaBytes && allocated[offset] != 0 &&
         allocated[offset + bytes - 1] != 0;
}

const char* describe_shared(size_t offset) {
  static char text[120];
  const Array* nearest = nullptr;
  size_t nearest_distance = 0;
  for (const Array* array = arrays; array != arrays + array_count; ++array) {
    const size_t end = array->offset + array->bytes;
    const size_t distance = offset < array->offset ? array->offset - offset
                            : offset >= end        ? offset - end + 1
                                                   : 0;
    if (nearest == nullptr || distance < nearest_distance) {
      nearest = array;
      nearest_distance = distance;
    }
  }
  if (nearest == nullptr) return "shared memory, without any array";
  snprintf(text, sizeof(text), "byte %lld of %.60s (%zu bytes)",
           static_cast<long long>(offset) - static_cast<long long>(nearest->offset), nearest->name,
           nearest->bytes);
  return text;
}

}  // namespace rf::simt
