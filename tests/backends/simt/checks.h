// Checks of shared memory accesses; see checks.cpp.
#pragma once

#include <cstddef>

namespace rf::simt {

enum class Access { kRead, kWrite, kAtomic };

// An access at `offset` of the arena by the current thread, from the instruction `code`.
void check_shared(size_t offset, size_t bytes, Access access, const void* code);

// Writing what is already there is no race, but the check comes before the store: call these when
// the store has happened and before another thread runs, or when it never will.
void flush_pending_race_check();
void drop_pending_race_check();

}  // namespace rf::simt
