// Large pages for large outputs. New memory is mapped and zeroed by the system 4 KB at a time while
// a kernel writes it, which takes several times as long as the kernel. NumPy asks for 2 MB pages
// itself; torch does not.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace rf {

// Asks for them in [p, p + bytes); does nothing where the system has none to give.
inline void advise_huge_pages(std::uintptr_t p, int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kPage = 4096;
  const std::uintptr_t begin = (p + kPage - 1) / kPage * kPage;
  const std::uintptr_t end = (p + static_cast<std::uintptr_t>(bytes)) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)p, (void)bytes;
#endif
}

}  // namespace rf
