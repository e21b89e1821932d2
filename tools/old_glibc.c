// What static libstdc++ and libgcc of a new system take from its C library and an older one lacks; see old_glibc.py.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

// 2.32: libstdc++ leaves out atomic operations where it says that there is one thread. It never does.
char __libc_single_threaded = 0;

// 2.36: std::random_device.
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
  }
  return value;
}

// 2.35: how an exception finds the frames of a module. Before, libgcc walked the list of modules, as is done here.
struct search {
  uintptr_t pc;
  struct dl_find_object* result;
};

static int look(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  const ElfW(Phdr)* frames = 0;
  uintptr_t start = UINTPTR_MAX, end = 0;
  int found = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + header->p_vaddr, to = from + header->p_memsz;
    if (header->p_type == PT_GNU_EH_FRAME) frames = header;
    if (header->p_type != PT_LOAD) continue;
    if (from < start) start = from;
    if (to > end) end = to;
    found |= search->pc >= from && search->pc < to;
  }
  if (!found || !frames) return found;
  search->result->dlfo_map_start = (void*)start;
  search->result->dlfo_map_end = (void*)end;
  search->result->dlfo_eh_frame = (void*)(info->dlpi_addr + frames->p_vaddr);
  return 2;
}

int _dl_find_object(void* pc, struct dl_find_object* result) {
  struct search search = {(uintptr_t)pc, result};
  memset(result, 0, sizeof *result);
  return dl_iterate_phdr(look, &search) == 2 ? 0 : -1;
}
